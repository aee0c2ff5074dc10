# cmake -DTEMPLATE=page.html -DSTYLES=a.css,b.css -DSCRIPTS=a.js,b.js -DCURVES=text -DOUT=f -P inline_page.cmake
#
# Writes the page with its styles and scripts inside, and their SHA-256 hashes in its Content-Security-Policy.
# @DATA@ stays, for the program that writes a report.

cmake_minimum_required(VERSION 3.25)  # as a script it would follow older policies

# "sha256-" and the base64 of the hash of `text`, as the policy wants it.
function(csp_hash text out)
  string(SHA256 hex "${text}")
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(result "")
  # 32 bytes: ten groups of three, and two bytes that end in one '='.
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 group)
    math(EXPR bits "0x${group}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${bits} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 character)
      string(APPEND result "${character}")
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" result "${result}")
  set(${out} "'sha256-${result}'" PARENT_SCOPE)
endfunction()

function(inline_all files tag out_text out_hashes)
  set(text "")
  set(hashes "")
  string(REPLACE "," ";" files "${files}")
  foreach(file IN LISTS files)
    file(READ "${file}" content)
    string(FIND "${content}" "</${tag}" ends)
    string(FIND "${content}" "<!--" comment)
    string(FIND "${content}" "\r" carriage)
    if(NOT ends EQUAL -1 OR NOT comment EQUAL -1 OR NOT carriage EQUAL -1)
      message(FATAL_ERROR "${file}: holds </${tag}, <!-- or a carriage return, and cannot stand inside a page")
    endif()
    csp_hash("${content}" hash)
    string(APPEND text "<${tag}>${content}</${tag}>\n")
    string(APPEND hashes " ${hash}")
  endforeach()
  set(${out_text} "${text}" PARENT_SCOPE)
  set(${out_hashes} "${hashes}" PARENT_SCOPE)
endfunction()

inline_all("${STYLES}" style styles style_hashes)
inline_all("${SCRIPTS}" script scripts script_hashes)
file(READ "${TEMPLATE}" page)
string(REPLACE "@CURVES@" "${CURVES}" page "${page}")
string(REPLACE "@STYLE_HASHES@" "${style_hashes}" page "${page}")
string(REPLACE "@SCRIPT_HASHES@" "${script_hashes}" page "${page}")
string(REPLACE "@STYLES@" "${styles}" page "${page}")
string(REPLACE "@SCRIPTS@" "${scripts}" page "${page}")
file(WRITE "${OUT}" "${page}")
