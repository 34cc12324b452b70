# et_operator_names(target folder): executorch/kernels/<folder>/Functions.h, in which the operators of
# the tables in `folder` have their names: see executorch/kernels/portable/overloads.h. Who links
# `target` can include it.
#
# Run as a script, with HEADER, FOLDER and SOURCES set, this file writes the header.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(EXECUTORCH_OPERATOR_NAMES ${CMAKE_CURRENT_LIST_FILE})

  function(et_operator_names target folder)
    # functions.h has the name already where the file system ignores case.
    if(EXISTS ${EXECUTORCH_ROOT}/executorch/kernels/${folder}/Functions.h)
      return()
    endif()
    get_target_property(sources ${target} EXECUTORCH_KERNEL_SOURCES)
    list(TRANSFORM sources PREPEND ${EXECUTORCH_ROOT}/executorch/kernels/)
    set(header ${EXECUTORCH_GENERATED_DIR}/executorch/kernels/${folder}/Functions.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DHEADER=${header} -DFOLDER=${folder} "-DSOURCES=${sources}" -P
              ${EXECUTORCH_OPERATOR_NAMES}
      DEPENDS ${EXECUTORCH_OPERATOR_NAMES} ${sources}
      COMMENT "Writing executorch/kernels/${folder}/Functions.h"
      VERBATIM)
    add_custom_target(${target}_names DEPENDS ${header})
    add_dependencies(${target} ${target}_names)
  endfunction()
  return()
endif()

cmake_minimum_required(VERSION 3.19)
set(operators "")
foreach(source ${SOURCES})
  file(READ ${source} text)
  string(REGEX MATCHALL "ET_OP\\([^()]*\\)" rows "${text}")
  foreach(row ${rows})
    string(REGEX REPLACE "[ \n]+" " " row "${row}")
    if(NOT row MATCHES "^ET_OP\\( ?\"([a-z_]+)::([a-z_0-9]+)[^\"]*\", ([A-Za-z_0-9]+)\\)$")
      message(FATAL_ERROR "${source}: found ${row}, "
                          "expected ET_OP(\"namespace::operator.overload\", kernel)")
    endif()
    set(operator "${CMAKE_MATCH_1}::${CMAKE_MATCH_2}")
    list(APPEND operators ${operator})
    list(APPEND kernels_of_${operator} native::${CMAKE_MATCH_3})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES operators)
list(SORT operators)

set(content "#pragma once\n#include <executorch/kernels/${FOLDER}/functions.h>\n")
string(APPEND content "#include <executorch/kernels/portable/overloads.h>\n")
foreach(operator ${operators})
  string(REGEX MATCH "^(.*)::(.*)$" _ ${operator})
  set(namespace ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  # Results go to out tensors, but for operators that end with _: those change an argument.
  if(NOT name MATCHES "_$")
    string(APPEND name _outf)
  endif()
  list(JOIN kernels_of_${operator} ", " kernels)
  string(APPEND content "namespace torch::executor::${namespace} {\n"
                        "inline constexpr native::Overloads<${kernels}> ${name}{};\n}\n")
endforeach()
file(WRITE ${HEADER} "${content}")
