# Embeds text files as C strings: renyi_embed(SOURCES_VARIABLE name=file...) adds one generated .c per
# file to the list; it defines `const char ry_<name>[]`. CMake runs it: no other tool is needed.
# SPDX-License-Identifier: Apache-2.0
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
  file(WRITE ${OUT} "extern const char ry_${NAME}[];\nconst char ry_${NAME}[] = {\n${hex}0};\n")
  return()
endif()

set(RENYI_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(renyi_embed list)
  foreach(pair ${ARGN})
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 file)
    set(out ${CMAKE_BINARY_DIR}/embedded/${name}.c)
    add_custom_command(OUTPUT ${out} DEPENDS ${file} ${RENYI_EMBED_SCRIPT} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DNAME=${name} -DOUT=${out} -P ${RENYI_EMBED_SCRIPT})
    list(APPEND ${list} ${out})
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
