# mp_embed(TARGET NAMESPACE SYMBOL FILES file... [BASE dir]): text files that travel inside the program.
#
# Sources of TARGET may then include "embedded_SYMBOL.hpp", which declares in NAMESPACE
#   std::string_view embedded_SYMBOL(std::string_view file_name);   // data() is null: no such file
#   std::span<const std::string_view> embedded_SYMBOL_names();      // sorted
# A name is the file's last path component, or its path below BASE when BASE is given. The C++ is made
# at build time, so that editing a file rebuilds one source and does not configure anything again.
#
#   mp_embed(mp_numerics mp policies FILES policies/ops.txt policies/hmp.txt)
function(mp_embed target namespace symbol)
  cmake_parse_arguments(ARG "" "BASE" "FILES" ${ARGN})
  if(NOT ARG_FILES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mp_embed(${target} ${namespace} ${symbol} FILES file... [BASE dir]): "
      "no files, or unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(pairs "")
  set(names "")
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(path ${file} ABSOLUTE)
    if(ARG_BASE)
      get_filename_component(base ${ARG_BASE} ABSOLUTE)
      file(RELATIVE_PATH name ${base} ${path})
    else()
      get_filename_component(name ${path} NAME)
    endif()
    list(APPEND names ${name})
    list(APPEND pairs "${name}\t${path}")
    list(APPEND paths ${path})
  endforeach()
  set(unique ${names})
  list(REMOVE_DUPLICATES unique)
  if(NOT names STREQUAL unique)
    message(FATAL_ERROR "mp_embed(${target} ${symbol}): two files have one name; give BASE")
  endif()
  list(SORT pairs)  # the lookup is a binary search; a tab sorts before every character of a name

  set(dir ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(stem ${dir}/embedded_${symbol})
  set(list_file ${stem}.list)
  string(REPLACE ";" "\n" lines "${pairs}")
  # Written only when it changes: removing a file from the list must rebuild, configuring must not.
  file(CONFIGURE OUTPUT ${list_file} CONTENT "@lines@\n" @ONLY)
  add_custom_command(OUTPUT ${stem}.cpp ${stem}.hpp
    COMMAND ${CMAKE_COMMAND} -DLIST=${list_file} -DSTEM=${stem} -DSYMBOL=${symbol}
      -DNAMESPACE=${namespace} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${paths} ${list_file} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    COMMENT "Embedding ${symbol}" VERBATIM)
  target_sources(${target} PRIVATE ${stem}.cpp ${stem}.hpp)
  target_include_directories(${target} PRIVATE ${dir})
endfunction()

# ---- At build time: cmake -P of this same file. --------------------------------------------------

set(MP_EMBED_HEADER [=[
#pragma once

#include <span>
#include <string_view>

namespace @NAMESPACE@ {

std::string_view embedded_@SYMBOL@(std::string_view file_name);
std::span<const std::string_view> embedded_@SYMBOL@_names();

}  // namespace @NAMESPACE@
]=])

set(MP_EMBED_LOOKUP [=[
}  // namespace

namespace @NAMESPACE@ {

std::string_view embedded_@SYMBOL@(std::string_view file_name) {
    const auto at = std::lower_bound(std::begin(kNames), std::end(kNames), file_name);
    if (at == std::end(kNames) || *at != file_name) return {};
    return kTexts[at - std::begin(kNames)];
}

std::span<const std::string_view> embedded_@SYMBOL@_names() { return kNames; }

}  // namespace @NAMESPACE@
]=])

function(mp_embed_write)
  file(STRINGS ${LIST} pairs)
  set(names "")
  set(texts "")
  foreach(pair IN LISTS pairs)
    string(FIND "${pair}" "\t" cut)
    string(SUBSTRING "${pair}" 0 ${cut} name)
    math(EXPR cut "${cut} + 1")
    string(SUBSTRING "${pair}" ${cut} -1 path)
    file(READ "${path}" text)
    string(FIND "${text}" ")mp_text\"" clash)
    if(NOT clash EQUAL -1)
      message(FATAL_ERROR "${path} contains the delimiter of the string that would hold it")
    endif()
    string(APPEND names "    \"${name}\"sv,\n")
    string(APPEND texts "    R\"mp_text(${text})mp_text\"sv,\n")
  endforeach()
  string(CONFIGURE "${MP_EMBED_HEADER}" header @ONLY)
  string(CONFIGURE "${MP_EMBED_LOOKUP}" lookup @ONLY)
  file(WRITE ${STEM}.hpp "${header}")
  file(WRITE ${STEM}.cpp "#include \"embedded_${SYMBOL}.hpp\"\n\n#include <algorithm>\n#include <iterator>\n\n"
    "namespace {\n\nusing namespace std::string_view_literals;\n\n"
    "constexpr std::string_view kNames[] = {\n" "${names}" "};\n\n"
    "constexpr std::string_view kTexts[] = {\n" "${texts}" "};\n\n" "${lookup}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  mp_embed_write()
endif()
