# Fails if TOOL defines MLIR's own functions instead of taking them from the
# shared libMLIR. NM: the nm to ask.
execute_process(COMMAND ${NM} -C --defined-only ${TOOL}
                OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "nm failed on ${TOOL}")
endif()
if(symbols MATCHES " [TW] mlir::(Operation|MLIRContext)::[^\n]*")
  message(FATAL_ERROR "${TOOL} holds a static copy of MLIR: ${CMAKE_MATCH_0}")
endif()
