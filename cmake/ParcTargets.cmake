# What every folder of parc declares its targets with. A dialect, a library, a
# tool and a unit test take one call each; reference pages come with them.

# Everything generated from ODS, and the pages made from it.
add_custom_target(parc-headers)
add_custom_target(parc-doc ALL)
set(PARC_REFERENCE_DIR ${PROJECT_BINARY_DIR}/docs/reference)

if(PARC_USE_LLD)
  find_program(PARC_LLD NAMES ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})
  if(PARC_LLD)
    get_filename_component(lld_dir ${PARC_LLD} DIRECTORY)
    # g++ finds a linker by its unversioned name only, so it is told where.
    add_link_options(-fuse-ld=lld -B${lld_dir})
  endif()
endif()

# One precompiled header for all compiler code: MLIR's headers cost seconds in
# every unit otherwise.
if(PARC_USE_PCH)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/parc-pch.cpp
       CONTENT "// The unit that carries parc's precompiled header.\n")
  add_library(parc-pch OBJECT ${PROJECT_BINARY_DIR}/parc-pch.cpp)
  set_source_files_properties(${PROJECT_BINARY_DIR}/parc-pch.cpp
                              PROPERTIES GENERATED ON)
  target_precompile_headers(parc-pch PRIVATE ${CMAKE_CURRENT_LIST_DIR}/ParcPCH.h)
endif()

function(_parc_compile name)
  if(PARC_USE_PCH)
    target_precompile_headers(${name} REUSE_FROM parc-pch)
  endif()
  # The flags must be those of the precompiled header: position independent
  # code comes from LLVM's flags, not from CMake's -fPIE for executables.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  add_dependencies(${name} parc-headers)
endfunction()

# parc_add_library(Name SOURCES a.cpp ... [LINK lib ...] [DEPENDS target ...])
function(parc_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  _parc_compile(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# parc_add_tool(name SOURCES a.cpp ... [LINK lib ...]): a program in build/bin.
function(parc_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  _parc_compile(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY PARC_TOOLS ${name})
  # A static MLIR archive slipped in by a library list duplicates MLIR without
  # any error; only the symbol table tells.
  add_test(NAME ${name}.shares-libMLIR
           COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM}
                   -DTOOL=$<TARGET_FILE:${name}>
                   -P ${PROJECT_SOURCE_DIR}/cmake/CheckSharedMLIR.cmake)
endfunction()

# parc_add_unittest(Name SOURCES a.cpp ... [LINK lib ...]): GoogleTest, in ctest.
function(parc_add_unittest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM GTest::gtest
                                        GTest::gtest_main)
  _parc_compile(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY PARC_UNIT_TESTS ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           ${PROJECT_BINARY_DIR}/unit)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}.)
endfunction()

# One ODS file to one reference page.
function(parc_add_reference page td)
  file(RELATIVE_PATH stem ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${td})
  string(MAKE_C_IDENTIFIER "${page}" id)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${page}.md ${ARGN})
  set(out ${PARC_REFERENCE_DIR}/${page}.md)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${page}.md ${out}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${page}.md
    COMMENT "Reference page of ${stem}")
  add_custom_target(parc-doc-${id} DEPENDS ${out})
  add_dependencies(parc-doc parc-doc-${id})
endfunction()

# parc_add_dialect(Name ir-name): the folder's generated code and page.
#   NameOps.td         all of the dialect (it includes the others):
#                      NameOps, NameDialect, NameTypes, NameAttrs .h.inc/.cpp.inc
#   NameEnums.td       if present: NameEnums       (includes no other dialect)
#   NameInterfaces.td  if present: NameInterfaces (op), NameAttrInterfaces,
#                      NameTypeInterfaces
# Give the library itself with parc_add_library.
function(parc_add_dialect name ir)
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls -dialect=${ir})
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs -dialect=${ir})
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls -dialect=${ir})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${ir})
  mlir_tablegen(${name}Types.h.inc -gen-typedef-decls -typedefs-dialect=${ir})
  mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${ir})
  mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${ir})
  mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${ir})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}Enums.td)
    set(LLVM_TARGET_DEFINITIONS ${name}Enums.td)
    mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
    mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}Interfaces.td)
    set(LLVM_TARGET_DEFINITIONS ${name}Interfaces.td)
    mlir_tablegen(${name}Interfaces.h.inc -gen-op-interface-decls)
    mlir_tablegen(${name}Interfaces.cpp.inc -gen-op-interface-defs)
    mlir_tablegen(${name}AttrInterfaces.h.inc -gen-attr-interface-decls)
    mlir_tablegen(${name}AttrInterfaces.cpp.inc -gen-attr-interface-defs)
    mlir_tablegen(${name}TypeInterfaces.h.inc -gen-type-interface-decls)
    mlir_tablegen(${name}TypeInterfaces.cpp.inc -gen-type-interface-defs)
  endif()
  add_public_tablegen_target(Parc${name}IncGen)
  add_dependencies(parc-headers Parc${name}IncGen)
  parc_add_reference(${ir} ${name}Ops.td -gen-dialect-doc -dialect=${ir})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}Interfaces.td)
    parc_add_reference(${ir}-interfaces ${name}Interfaces.td
                       -gen-op-interface-docs)
  endif()
endfunction()

# parc_add_passes(Group): in the CMakeLists.txt beside include/parc/Group/Passes.td.
# Generates parc/Group/Passes.h.inc (declarations, option structs, and
# registration: registerParcGroupPasses) and a page of the reference.
function(parc_add_passes group)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name=Parc${group})
  add_public_tablegen_target(Parc${group}PassesIncGen)
  add_dependencies(parc-headers Parc${group}PassesIncGen)
  string(TOLOWER ${group} page)
  parc_add_reference(passes-${page} Passes.td -gen-pass-doc)
endfunction()
