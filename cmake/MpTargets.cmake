# mp_add_library(NAME SOURCES ... [LINK ...] [PRIVATE_LINK ...]): one room, one static library.
# Includes are by room path from the repository root ("analyzer/facts/model.hpp").
function(mp_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE mp_warnings ${ARG_PRIVATE_LINK})
endfunction()

# mp_add_test(NAME SOURCES ... LINK ... [LABELS ...] [COMPUTES]): a GoogleTest program. It is one ctest test, because
# starting a process costs more than most of our cases. Label `quick` unless told otherwise; tests/CMakeLists.txt lists
# the labels. The target mp_quick_tests builds all programs with that label. The code of a test runs once, so it is
# compiled quickly: not optimized unless it COMPUTES, and a program of several files reads GoogleTest's headers once.
function(mp_add_test name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS quick)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE mp_warnings GTest::gmock GTest::gtest_main mp_source_dir ${ARG_LINK})
  if(NOT ARG_COMPUTES)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  endif()
  list(LENGTH ARG_SOURCES sources)
  if(sources GREATER 3)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    target_compile_options(${name} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  if(ARG_LABELS STREQUAL quick)
    add_dependencies(mp_quick_tests ${name})
  endif()
endfunction()
