# Clang and LLVM 19, linked statically: mp-lint starts in 5 ms instead of 15 ms and needs no shared
# libclang. Debian's imported clang targets would link the shared libLLVM, so the archives are named.
# find_package has no version, because 19.1.7 does not count as compatible with "19".
find_package(LLVM REQUIRED CONFIG PATHS /usr/lib/llvm-19/lib/cmake/llvm NO_DEFAULT_PATH)
if(NOT LLVM_VERSION_MAJOR EQUAL 19)
  message(FATAL_ERROR "LLVM 19 is needed, found ${LLVM_VERSION}: install libclang-19-dev and llvm-19-dev")
endif()

add_library(mp_libclang INTERFACE)
target_include_directories(mp_libclang SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(mp_libclang INTERFACE ${LLVM_DEFINITIONS_LIST})
set(clang_archives clangFrontend clangDriver clangSerialization clangParse clangSema clangAnalysis
  clangEdit clangIndex clangFormat clangToolingInclusions clangToolingCore clangRewrite clangASTMatchers
  clangAPINotes clangAST clangSupport clangLex clangBasic)
foreach(archive IN LISTS clang_archives)
  find_library(MP_LIB_${archive} NAMES lib${archive}.a PATHS ${LLVM_LIBRARY_DIR} NO_DEFAULT_PATH REQUIRED)
  list(APPEND clang_paths ${MP_LIB_${archive}})
endforeach()
execute_process(COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libfiles
    core support option targetparser frontendopenmp frontendhlsl windowsdriver profiledata bitreader mcparser
  OUTPUT_VARIABLE llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_archives)
find_package(ZLIB REQUIRED)
target_link_libraries(mp_libclang INTERFACE ${clang_paths} ${llvm_archives}
  mp_zstd ZLIB::ZLIB Threads::Threads dl m)

# Clang's own headers (cuda_wrappers, __clang_cuda_runtime_wrapper.h, stddef.h ...): mp-lint needs their
# directory at run time.
set(MP_CLANG_RESOURCE_DIR ${LLVM_LIBRARY_DIR}/clang/19)
if(NOT EXISTS ${MP_CLANG_RESOURCE_DIR}/include/stddef.h)
  message(FATAL_ERROR "clang's headers are missing from ${MP_CLANG_RESOURCE_DIR}: install libclang-common-19-dev")
endif()
mp_feature("LLVM/Clang" TRUE "${LLVM_VERSION}, static" "")
