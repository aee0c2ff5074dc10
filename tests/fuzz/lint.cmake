# The fuzzers of mp-lint link its libraries, which are many files: they are built with coverage themselves, and
# with sanitizers by the preset asan.
if(NOT MP_SANITIZE MATCHES address)
  return()
endif()
foreach(library mp_facts mp_python mp_region mp_rules mp_cache)
  target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
endforeach()
target_compile_options(mp_tree_sitter PRIVATE -fsanitize=address)
function(mp_add_lint_fuzzer name)
  add_executable(${name}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/${name}_fuzz.cpp)
  target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name}_fuzz PRIVATE mp_warnings mp_python mp_rules mp_region mp_facts mp_cache mp_fix
    mp_xxhash)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name}_corpus)
  add_test(NAME fuzz.${name} COMMAND ${name}_fuzz -max_total_time=60 -timeout=20 -rss_limit_mb=2048
    -max_len=16384 ${CMAKE_CURRENT_BINARY_DIR}/${name}_corpus ${ARGN})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS long TIMEOUT 180)
endfunction()
mp_add_lint_fuzzer(facts)
# Its seeds are the examples of the rules and the planted programs.
mp_add_lint_fuzzer(python ${PROJECT_SOURCE_DIR}/testdata/lint ${PROJECT_SOURCE_DIR}/testdata/programs/lint_python)
