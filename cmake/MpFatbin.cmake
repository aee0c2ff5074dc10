# mp_add_fatbin(OUT SOURCE DEVICES n... PTX n): compiles CUDA kernels with MP_NVCC into one file for several devices.
# OUT.report is what ptxas said about each kernel.
function(mp_add_fatbin out source)
  cmake_parse_arguments(ARG "" "PTX" "DEVICES" ${ARGN})
  set(flags -std=c++20 -O3 -I${PROJECT_SOURCE_DIR} -t 2 -fatbin -Xfatbin -compress-all -Xptxas -v
    -MD -MF ${out}.d -MT ${out})
  foreach(device IN LISTS ARG_DEVICES)
    list(APPEND flags -gencode arch=compute_${device},code=sm_${device})
  endforeach()
  list(APPEND flags -gencode arch=compute_${ARG_PTX},code=compute_${ARG_PTX})
  add_custom_command(OUTPUT ${out} ${out}.report
    COMMAND ${CMAKE_COMMAND} -DREPORT=${out}.report -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      -- ${MP_NVCC} ${flags} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${out}
    DEPENDS ${source} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPFILE ${out}.d
    COMMENT "Compiling ${source} for ${ARG_DEVICES}" VERBATIM)
endfunction()

# ---- At build time: runs what follows "--" and keeps its output, which is shown when it fails. ----

if(CMAKE_SCRIPT_MODE_FILE)
  set(command "")
  set(found FALSE)
  foreach(i RANGE ${CMAKE_ARGC})
    if(found AND i LESS CMAKE_ARGC)
      list(APPEND command "${CMAKE_ARGV${i}}")
    elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
      set(found TRUE)
    endif()
  endforeach()
  execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_FILE ${REPORT} ERROR_FILE ${REPORT})
  if(NOT code EQUAL 0)
    file(READ ${REPORT} text)
    message(FATAL_ERROR "${text}")
  endif()
endif()
