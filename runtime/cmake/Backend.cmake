# Chooses the backend and enables its language. A project that adds this folder
# includes this file first, in its own top directory: CMake wants a language
# enabled in the highest directory that uses it.
#
#   project(train LANGUAGES CXX)
#   include(runtime/cmake/Backend.cmake)
#   add_subdirectory(runtime)
#   parc_add_program(train src/main.cpp)
include_guard(DIRECTORY)

set(PARC_BACKEND "host" CACHE STRING "Where ranks run: host or cuda")
set_property(CACHE PARC_BACKEND PROPERTY STRINGS host cuda)
if(NOT PARC_BACKEND MATCHES "^(host|cuda)$")
  message(FATAL_ERROR "PARC_BACKEND: expected host or cuda, got '${PARC_BACKEND}'")
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(PARC_BACKEND STREQUAL "cuda")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(PARC_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(PARC_NVCC)
      set(CMAKE_CUDA_COMPILER ${PARC_NVCC})
    endif()
  endif()
  enable_language(CUDA)
endif()
