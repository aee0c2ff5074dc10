# The rule file's fuzzer: the gate's own sources again, with coverage and sanitizers.
get_target_property(gate_sources mp_gate SOURCES)
list(TRANSFORM gate_sources PREPEND ${PROJECT_SOURCE_DIR}/runtime/gate/)
add_executable(rules_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/rules_fuzz.cpp ${gate_sources})
target_compile_options(rules_fuzz PRIVATE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
target_link_options(rules_fuzz PRIVATE -fsanitize=fuzzer,address,undefined)
target_link_libraries(rules_fuzz PRIVATE mp_warnings mp_judge mp_trace_report mp_fold mp_launch mp_symbols
  nlohmann_json::nlohmann_json mp_toml mp_xxhash)
target_include_directories(rules_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
# New inputs go to the build tree; the seeds are only read.
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/rules_corpus)
add_test(NAME fuzz.rules COMMAND rules_fuzz -max_total_time=60 -timeout=5 -rss_limit_mb=2048 -max_len=65536
  ${CMAKE_CURRENT_BINARY_DIR}/rules_corpus ${CMAKE_CURRENT_SOURCE_DIR}/rules_seeds)
set_tests_properties(fuzz.rules PROPERTIES LABELS long TIMEOUT 180)
