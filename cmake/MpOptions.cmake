# Options of the whole build. Targets get them through mp_warnings; only the language level is global.
option(MP_BUILD_TESTS "Build the tests" ON)
option(MP_WERROR "Treat warnings as errors" OFF)
set(MP_SANITIZE "" CACHE STRING "Sanitizers for our own code, e.g. address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(MP_CCACHE ccache)
if(MP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout, so that a second clone on this machine finds the objects of the first. Objects with
  # debug information are not shared, because the path of their build directory is stored in them. Precompiled headers
  # hold no time (MpTargets.cmake), which ccache has to be told.
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_SLOPPINESS=pch_defines,time_macros ${MP_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(mp_warnings INTERFACE)
target_compile_options(mp_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion
  $<$<BOOL:${MP_WERROR}>:-Werror>)
if(MP_SANITIZE)
  target_compile_options(mp_warnings INTERFACE -fsanitize=${MP_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(mp_warnings INTERFACE -fsanitize=${MP_SANITIZE})
endif()

# lld links the 44 MB mp-lint in under a second; bfd takes ten.
find_program(MP_LLD NAMES ld.lld-19 ld.lld)
if(MP_LLD)
  target_link_options(mp_warnings INTERFACE --ld-path=${MP_LLD})
endif()
