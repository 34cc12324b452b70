# What the build reads from the operator tables that end the files of families: ET_OP(name, function, ...),
# executorch/runtime/kernel/boxing.h.
#
# et_operator_names(target folder): executorch/kernels/<folder>/Functions.h, in which the operators of
# the tables in `folder` have their names: see executorch/kernels/portable/overloads.h. Who links
# `target` can include it.
#
# et_operator_schemas(target text literals): the schemas that rows of `target` have, each without its
# namespace and on a line of its own: as `text`, and as `literals`, which C++ includes. Both are paths.
#
# et_operator_work(file targets...): by which rules the profiler counts the work of operators
# (executorch/devtools/profiler/work_rules.cpp), as C++: {"add", rules::elementwise}, ...
# The rule is the row's, else that of its family in tables.h. Overloads share one.
#
# Run as a script, with SOURCES and what is to be written, this file writes it: HEADER of FOLDER, TEXT
# and LITERALS, or WORK.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(EXECUTORCH_OPERATOR_ROWS ${CMAKE_CURRENT_LIST_FILE})

  function(et_operator_names target folder)
    # functions.h has the name already where the file system ignores case.
    if(EXISTS ${EXECUTORCH_ROOT}/executorch/kernels/${folder}/Functions.h)
      return()
    endif()
    set(header ${EXECUTORCH_GENERATED_DIR}/executorch/kernels/${folder}/Functions.h)
    _read_operator_rows(${target} "HEADER=${header};FOLDER=${folder}" ${header})
    add_custom_target(${target}_names DEPENDS ${header})
    add_dependencies(${target} ${target}_names)
  endfunction()

  function(et_operator_schemas target text literals)
    _read_operator_rows(${target} "TEXT=${text};LITERALS=${literals}" ${text} ${literals})
  endfunction()

  function(et_operator_work file)
    _read_operator_rows("${ARGN}" WORK=${file} ${file})
  endfunction()

  # `settings` are the script's, `ARGN` the files that it writes.
  function(_read_operator_rows targets settings)
    set(sources "")
    foreach(target ${targets})
      get_target_property(of_target ${target} EXECUTORCH_KERNEL_SOURCES)
      list(APPEND sources ${of_target})
    endforeach()
    list(TRANSFORM sources PREPEND ${EXECUTORCH_ROOT}/executorch/kernels/)
    set(tables ${sources})
    list(TRANSFORM tables REPLACE "/kernels/([a-z]+)/.*" "/kernels/\\1/tables.h")
    list(REMOVE_DUPLICATES tables)
    list(TRANSFORM settings PREPEND -D)
    list(TRANSFORM ARGN REPLACE "^.*/executorch/" "executorch/" OUTPUT_VARIABLE written)
    list(JOIN written ", " written)
    add_custom_command(
      OUTPUT ${ARGN}
      COMMAND ${CMAKE_COMMAND} ${settings} "-DSOURCES=${sources}" -P ${EXECUTORCH_OPERATOR_ROWS}
      DEPENDS ${EXECUTORCH_OPERATOR_ROWS} ${sources} ${tables}
      COMMENT "Writing ${written}"
      VERBATIM)
  endfunction()
  return()
endif()

cmake_minimum_required(VERSION 3.19)

# rule: that of the family whose table `source` ends with, "namespace::operator.overload" being a row.
function(work_of_family source text rule)
  get_filename_component(folder ${source} DIRECTORY)
  file(READ ${folder}/tables.h tables)
  string(REGEX MATCH "Span<const Kernel> ([a-z_]+)_ops\\(\\)" _ "${text}")
  if(NOT tables MATCHES "_\\(${CMAKE_MATCH_1}, ([a-z_]+)\\)")
    message(FATAL_ERROR "${folder}/tables.h: expected a row _(family, work) for ${source}")
  endif()
  set(${rule} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# Of all rows: operators, "namespace::name", with kernels_of_... each; schemas; names without a
# namespace and an overload, with work_of_... each.
set(operators "")
set(schemas "")
set(names "")
set(string "\"[^\"]*\"")
set(row_form "[^A-Z_]ET_OP\\([ \n]*${string},[ \n]*[A-Za-z_0-9]+(,([ \n]*${string})+|,[ \n]*[a-z_]+)?\\)")
foreach(source ${SOURCES})
  file(READ ${source} text)
  string(REGEX MATCHALL "[^A-Z_]ET_OP\\(" begun "${text}")
  string(REGEX MATCHALL "${row_form}" rows "${text}")
  list(LENGTH begun n_begun)
  list(LENGTH rows n_rows)
  if(NOT n_rows EQUAL n_begun)
    message(FATAL_ERROR "${source}: ${n_begun} rows, of which ${n_rows} have the form ET_OP(\"namespace::"
                        "operator.overload\", kernel), with a schema or a work rule as third argument, or none")
  endif()
  if(WORK AND rows)
    work_of_family(${source} "${text}" family_work)
  endif()
  foreach(row ${rows})
    string(REGEX REPLACE "[ \n]+" " " row "${row}")
    if(NOT row MATCHES "ET_OP\\( ?\"([a-z_]+)::([a-z_0-9]+)([^\"]*)\", ([A-Za-z_0-9]+),? ?(.*)\\)$")
      message(FATAL_ERROR "${source}: found ${row}, "
                          "expected ET_OP(\"namespace::operator.overload\", kernel)")
    endif()
    set(name ${CMAKE_MATCH_2})
    set(operator ${CMAKE_MATCH_1}::${name})
    set(overload "${CMAKE_MATCH_3}")
    set(fact "${CMAKE_MATCH_5}")
    list(APPEND operators ${operator})
    list(APPEND kernels_of_${operator} native::${CMAKE_MATCH_4})
    set(work "${family_work}")
    if(fact MATCHES "^\"(.*)\"$")
      # Pieces of a string literal are one string.
      string(REPLACE "\" \"" "" schema "${CMAKE_MATCH_1}")
      list(APPEND schemas "${name}${overload}${schema}")
    elseif(fact)
      set(work ${fact})
    endif()
    if(WORK AND NOT "${work_of_${name}}" MATCHES "^(${work})?$")
      message(FATAL_ERROR "${source}: the work of ${operator} is ${work}, of a row before it ${work_of_${name}}")
    endif()
    list(APPEND names ${name})
    set(work_of_${name} ${work})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES operators)
list(SORT operators)
list(REMOVE_DUPLICATES names)
list(SORT names)

if(TEXT)
  list(JOIN schemas "\n" lines)
  file(WRITE ${TEXT} "${lines}\n")
  list(TRANSFORM schemas REPLACE "(.+)" "\"\\1\",")
  list(JOIN schemas "\n" lines)
  file(WRITE ${LITERALS} "${lines}\n")
elseif(WORK)
  set(content "")
  foreach(name ${names})
    string(APPEND content "{\"${name}\", rules::${work_of_${name}}},\n")
  endforeach()
  file(WRITE ${WORK} "${content}")
else()
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
endif()
