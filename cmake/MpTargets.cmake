# mp_add_library(NAME SOURCES ... [LINK ...] [PRIVATE_LINK ...]): one room, one static library.
# Includes are by room path from the repository root ("analyzer/facts/model.hpp").
function(mp_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE mp_warnings ${ARG_PRIVATE_LINK})
endfunction()

# mp_add_test(NAME SOURCES ... LINK ... [LABELS ...] [PRODUCT_CASES ...] [COMPUTES]): a GoogleTest program. It is one
# ctest test, because starting a process costs more than most of our cases. Label `quick` unless told otherwise;
# tests/CMakeLists.txt lists the labels. The target mp_quick_tests builds all programs with that label. PRODUCT_CASES
# are patterns of cases that take seconds; they are the test NAME.more with the label `product`. The code of a test runs
# once, so it is compiled quickly: not optimized unless it COMPUTES, and a program of several files reads GoogleTest's
# headers once.
function(mp_add_test name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;LINK;LABELS;PRODUCT_CASES" ${ARGN})
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
  if(ARG_PRODUCT_CASES)
    list(JOIN ARG_PRODUCT_CASES ":" cases)
    add_test(NAME ${name}.more COMMAND ${name} --gtest_brief=1 --gtest_filter=${cases})
    set_tests_properties(${name}.more PROPERTIES LABELS product FAIL_REGULAR_EXPRESSION " 0 tests ")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "GTEST_FILTER=-${cases}")
  endif()
  if(ARG_LABELS STREQUAL quick)
    add_dependencies(mp_quick_tests ${name})
  endif()
endfunction()
