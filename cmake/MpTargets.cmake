# mp_add_library(NAME SOURCES ... [LINK ...] [PRIVATE_LINK ...]): one room, one static library.
# Includes are by room path from the repository root ("analyzer/facts/model.hpp").
function(mp_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE mp_warnings ${ARG_PRIVATE_LINK})
endfunction()

# mp_add_test(NAME SOURCES ... LINK ... [LABELS ...]): a GoogleTest program; every case is a ctest test. The
# default label is `fast`.
function(mp_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE mp_warnings GTest::gmock GTest::gtest_main mp_source_dir ${ARG_LINK})
  gtest_discover_tests(${name} PROPERTIES LABELS "${ARG_LABELS}" DISCOVERY_TIMEOUT 60)
endfunction()
