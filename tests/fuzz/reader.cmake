# The fuzzer of recordings: the sources of the reader and the fold again, with coverage and sanitizers.
set(reader_sources)
foreach(pair mp_trace_record:trace mp_trace:trace mp_fold:fold)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 library)
  list(GET pair 1 room)
  get_target_property(sources ${library} SOURCES)
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/runtime/${room}/)
  list(APPEND reader_sources ${sources})
endforeach()
add_executable(reader_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/reader_fuzz.cpp ${reader_sources}
  ${PROJECT_SOURCE_DIR}/tests/fakes/synthetic_run.cpp)
target_compile_options(reader_fuzz PRIVATE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
target_link_options(reader_fuzz PRIVATE -fsanitize=fuzzer,address,undefined)
target_compile_definitions(reader_fuzz PRIVATE MP_TRACE_ZSTD)
target_link_libraries(reader_fuzz PRIVATE mp_warnings mp_numerics Threads::Threads mp_zstd)
target_include_directories(reader_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(reader_fuzz SYSTEM PRIVATE ${xxhash_INCLUDE_DIRS})
# Its seed is a recording that it makes itself when the corpus is empty.
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/reader_corpus)
add_test(NAME fuzz.reader COMMAND reader_fuzz -max_total_time=60 -timeout=10 -rss_limit_mb=2048 -max_len=65536
  ${CMAKE_CURRENT_BINARY_DIR}/reader_corpus)
set_tests_properties(fuzz.reader PROPERTIES LABELS long TIMEOUT 180)
