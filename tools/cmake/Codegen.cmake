# Registration libraries of a user's choice: operators of their own, and selections of ours. Each call
# names one library; its files lie in <binary dir>/<LIB_NAME>. Everything runs when building, by the
# Python modules under executorch.codegen, which need pyyaml; flatc, to read a program; and torchgen, a
# part of torch, for kernels of the user's.

# Where the files of a library lie.
function(_executorch_codegen_folder var library)
  if(library)
    set(${var} ${CMAKE_CURRENT_BINARY_DIR}/${library} PARENT_SCOPE)
  else()
    set(${var} ${CMAKE_CURRENT_BINARY_DIR} PARENT_SCOPE)
  endif()
endfunction()

# Stops where the Python that writes selections cannot: better now than in the middle of a build.
function(_executorch_check_codegen_python)
  if("${EXECUTORCH_CODEGEN_PYTHON}" STREQUAL "${PYTHON_EXECUTABLE}")
    return()
  endif()
  execute_process(COMMAND ${PYTHON_EXECUTABLE} -c "import yaml" RESULT_VARIABLE missing OUTPUT_QUIET
                                                                ERROR_QUIET)
  if(missing)
    message(FATAL_ERROR "Selections of operators are written by ${PYTHON_EXECUTABLE}, which does not "
                        "have PyYAML: pip install pyyaml, or set PYTHON_EXECUTABLE to a Python that "
                        "has it")
  endif()
  set(EXECUTORCH_CODEGEN_PYTHON ${PYTHON_EXECUTABLE} CACHE INTERNAL "A Python that has PyYAML")
endfunction()

# Runs a module of executorch.codegen into OUTPUT.
function(_executorch_codegen)
  cmake_parse_arguments(ARG "" "MODULE" "OUTPUT;ARGUMENTS;DEPENDS" ${ARGN})
  resolve_python_executable()
  _executorch_check_codegen_python()
  get_filename_component(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.. ABSOLUTE)
  file(GLOB sources CONFIGURE_DEPENDS ${root}/executorch/codegen/*.py
       ${root}/executorch/codegen/tools/*.py)
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${root} ${PYTHON_EXECUTABLE} -m
            executorch.codegen.${ARG_MODULE} ${ARG_ARGUMENTS}
    DEPENDS ${ARG_DEPENDS} ${sources}
    VERBATIM)
endfunction()

# The files among the arguments: a yaml of our own kernels need not be there.
function(_executorch_existing_files var)
  set(found "")
  foreach(path ${ARGN})
    if(EXISTS ${path} OR path MATCHES "^${CMAKE_CURRENT_BINARY_DIR}/")
      list(APPEND found ${path})
    endif()
  endforeach()
  set(${var} "${found}" PARENT_SCOPE)
endfunction()

# gen_selected_ops(LIB_NAME name [OPS_SCHEMA_YAML a.yaml] [ROOT_OPS "aten::add.out,..."]
#                  [INCLUDE_ALL_OPS ON] [OPS_FROM_MODEL model.pte] [DTYPE_SELECTIVE_BUILD ON])
#   Writes selected_operators.yaml; its path is left in gen_selected_ops_output_yaml. With
#   DTYPE_SELECTIVE_BUILD also selected_op_variants.h, for kernels of the user's; given to the two
#   functions below, too, it drops from ours the element types that no selected operator is asked
#   for: by the models, or by the kernel keys or lists of types (kernel_metadata) of a yaml.
#   Form of release 0.2: gen_selected_ops(<yaml> <root ops> <include all>)
function(gen_selected_ops)
  cmake_parse_arguments(
    ARG "" "LIB_NAME;OPS_SCHEMA_YAML;ROOT_OPS;INCLUDE_ALL_OPS;OPS_FROM_MODEL;DTYPE_SELECTIVE_BUILD" ""
    ${ARGN})
  _executorch_codegen_folder(folder "${ARG_LIB_NAME}")
  if(NOT ARG_LIB_NAME)
    list(APPEND ARGN "" "" "")
    list(GET ARGN 0 ARG_OPS_SCHEMA_YAML)
    list(GET ARGN 1 ARG_ROOT_OPS)
    list(GET ARGN 2 ARG_INCLUDE_ALL_OPS)
  endif()
  set(yaml ${folder}/selected_operators.yaml)
  set(arguments --output_path=${yaml})
  if(ARG_INCLUDE_ALL_OPS)
    list(APPEND arguments --include_all_operators)
  endif()
  if(ARG_ROOT_OPS)
    string(REPLACE ";" "," roots "${ARG_ROOT_OPS}")
    list(APPEND arguments "--root_ops=${roots}")
  endif()
  set(depends "")
  foreach(pair OPS_SCHEMA_YAML:ops_schema_yaml_path OPS_FROM_MODEL:model_file_path)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 variable)
    list(GET pair 1 option)
    if(ARG_${variable})
      string(REPLACE "," ";" files "${ARG_${variable}}")
      list(TRANSFORM files REPLACE "^([^/].*)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
      list(APPEND depends ${files})
      string(REPLACE ";" "," files "${files}")
      list(APPEND arguments "--${option}=${files}")
    endif()
  endforeach()
  _executorch_codegen(MODULE tools.gen_oplist OUTPUT ${yaml} ARGUMENTS ${arguments} DEPENDS
                      ${depends})
  if(ARG_DTYPE_SELECTIVE_BUILD)
    _executorch_codegen(
      MODULE tools.gen_selected_op_variants OUTPUT ${folder}/selected_op_variants.h
      ARGUMENTS --yaml-file-path=${yaml} --output-dir=${folder} DEPENDS ${yaml})
  endif()
  set(gen_selected_ops_output_yaml ${yaml} PARENT_SCOPE)
endfunction()

# generate_bindings_for_kernels([ADD_EXCEPTION_BOUNDARY] LIB_NAME name [FUNCTIONS_YAML a.yaml]
#                               [CUSTOM_OPS_YAML b.yaml] [DTYPE_SELECTIVE_BUILD ON])
#   Writes the registration of the selected operators (all, without gen_selected_ops() of that
#   LIB_NAME before): ours, by FUNCTIONS_YAML kernels/portable/functions.yaml or when no yaml is
#   given, and those of the yamls, which executorch/codegen/kernel_yaml.py describes. Sources are left
#   in gen_command_sources.
function(generate_bindings_for_kernels)
  cmake_parse_arguments(
    ARG "ADD_EXCEPTION_BOUNDARY;LINK_WHOLE"
    "LIB_NAME;FUNCTIONS_YAML;CUSTOM_OPS_YAML;DTYPE_SELECTIVE_BUILD" "" ${ARGN})
  _executorch_codegen_folder(folder "${ARG_LIB_NAME}")
  set(library ${ARG_LIB_NAME})
  if(NOT library)
    set(library selected_operators)
  endif()
  set(arguments --lib-name=${library} --install-dir=${folder})
  if(ARG_DTYPE_SELECTIVE_BUILD)
    list(APPEND arguments --dtype-selective-build)
  endif()
  if(ARG_LINK_WHOLE) # by executorch_add_selected_ops()
    list(APPEND arguments --link-whole)
  endif()
  set(selected ${folder}/selected_operators.yaml)
  get_source_file_property(is_generated ${selected} GENERATED)
  set(depends "")
  if(is_generated OR EXISTS ${selected})
    list(APPEND arguments --op-selection-yaml-path=${selected})
    list(APPEND depends ${selected})
  endif()
  foreach(pair FUNCTIONS_YAML:functions CUSTOM_OPS_YAML:custom-ops)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 variable)
    list(GET pair 1 option)
    if(ARG_${variable})
      get_filename_component(file ${ARG_${variable}} ABSOLUTE)
      list(APPEND arguments --${option}-yaml-path=${file})
      _executorch_existing_files(existing ${file})
      list(APPEND depends ${existing})
    endif()
  endforeach()
  get_filename_component(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.. ABSOLUTE)
  file(GLOB tables CONFIGURE_DEPENDS ${root}/executorch/kernels/*/*.cpp)
  set(sources ${folder}/RegisterCodegenUnboxedKernelsEverything.cpp)
  set(headers ${folder}/Functions.h ${folder}/NativeFunctions.h ${folder}/CustomOpsNativeFunctions.h)
  _executorch_codegen(MODULE gen OUTPUT ${sources} ${headers} ARGUMENTS ${arguments} DEPENDS
                      ${depends} ${tables})
  set(gen_command_sources ${sources} ${headers} PARENT_SCOPE)
endfunction()

# _executorch_selected_kernels(library folder): adds our kernels, compiled for the element types of
# the selection in `folder`. The archive of `library` comes before those of the whole kernels, so that
# theirs are not linked.
function(_executorch_selected_kernels library folder)
  set(selected ${folder}/selected_operators.yaml)
  target_sources(${library} PRIVATE ${folder}/selected_op_variants.h)
  get_filename_component(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.. ABSOLUTE)
  foreach(part kernels_util_all_deps portable_kernels quantized_kernels)
    get_target_property(sources ${part} EXECUTORCH_KERNEL_SOURCES)
    get_target_property(options ${part} EXECUTORCH_KERNEL_OPTIONS)
    list(TRANSFORM sources PREPEND ${folder}/kernels/ OUTPUT_VARIABLE written)
    list(TRANSFORM sources PREPEND ${root}/executorch/kernels/)
    _executorch_codegen(
      MODULE selected_kernels OUTPUT ${written}
      ARGUMENTS --op-selection-yaml-path=${selected} --install-dir=${folder}/kernels ${sources}
      DEPENDS ${selected} ${sources})
    add_library(${library}_${part} OBJECT ${written})
    set_target_properties(${library}_${part} PROPERTIES CXX_STANDARD 20 CXX_EXTENSIONS OFF
                                                        POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${library}_${part} PRIVATE ${EXECUTORCH_BARE_FLAGS} ${options}
                                                      ${EXECUTORCH_FAST_FLAGS})
    target_include_directories(${library}_${part} PRIVATE ${root})
    target_link_libraries(${library}_${part} PRIVATE executorch_private_flags executorch_core
                                                     executorch_cpu)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${library}_${part}>)
  endforeach()
endfunction()

# gen_operators_lib([SHARED] LIB_NAME name [KERNEL_LIBS a b] [DEPS executorch ...]
#                   [DTYPE_SELECTIVE_BUILD ON])
#   The library that registers what generate_bindings_for_kernels() wrote; link it and nothing else.
#   KERNEL_LIBS hold the functions of the user; portable_kernels and quantized_kernels are always
#   there. optimized_fusion among them adds the fused operators (speed for size). What is not
#   selected is dropped by the linker; with DTYPE_SELECTIVE_BUILD also the element types that the
#   selection does not name, and an operator that meets one says so. Form of release 0.2: the name
#   without LIB_NAME.
function(gen_operators_lib)
  cmake_parse_arguments(ARG "SHARED" "LIB_NAME;DTYPE_SELECTIVE_BUILD" "KERNEL_LIBS;DEPS" ${ARGN})
  _executorch_codegen_folder(folder "${ARG_LIB_NAME}")
  if(NOT ARG_LIB_NAME)
    list(GET ARG_UNPARSED_ARGUMENTS 0 ARG_LIB_NAME)
    set(symbol et_registered_selected_operators)
  else()
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" symbol "et_registered_${ARG_LIB_NAME}")
  endif()
  set(source ${folder}/RegisterCodegenUnboxedKernelsEverything.cpp)
  if(ARG_SHARED AND ARG_DTYPE_SELECTIVE_BUILD)
    message(FATAL_ERROR "gen_operators_lib(${ARG_LIB_NAME}): a SHARED library links libexecutorch, "
                        "which has all element types; it cannot be built for some of them")
  elseif(ARG_SHARED)
    add_library(${ARG_LIB_NAME} SHARED ${source})
    target_compile_features(${ARG_LIB_NAME} PRIVATE cxx_std_20)
    target_link_libraries(${ARG_LIB_NAME} PRIVATE executorch_shared ${ARG_KERNEL_LIBS})
  else()
    et_library(${ARG_LIB_NAME} SOURCES ${source} REGISTERS ${symbol}
               DEPS ${ARG_KERNEL_LIBS} ${ARG_DEPS} quantized_kernels portable_kernels executorch)
    if(ARG_DTYPE_SELECTIVE_BUILD)
      _executorch_selected_kernels(${ARG_LIB_NAME} ${folder})
    endif()
    if(APPLE)
      target_link_options(${ARG_LIB_NAME} INTERFACE LINKER:-dead_strip)
    elseif(NOT MSVC)
      target_link_options(${ARG_LIB_NAME} INTERFACE LINKER:--gc-sections)
    endif()
  endif()
  target_include_directories(${ARG_LIB_NAME} PUBLIC ${folder})
endfunction()

# executorch_add_selected_ops(name FROM model.pte ... [OPS aten::add.out ...] [ALL_TYPES] [FUSION])
#   A library for an application that runs these programs and no other: Module, tensors and loaders with
#   exactly the programs' operators, for their element types, and the backends that they call. Link it in
#   the place of executorch::executorch. Of the operators of language models (llama::...) one brings all.
#   FROM       programs, from the source folder; they may be made by the build
#   OPS        operators beyond those of the programs, for all element types
#   ALL_TYPES  all element types: our archives are linked as they are, and no kernel is compiled
#   FUSION     fused operators: speed for size
function(executorch_add_selected_ops name)
  cmake_parse_arguments(ARG "ALL_TYPES;FUSION" "" "FROM;OPS" ${ARGN})
  if(NOT ARG_FROM OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "executorch_add_selected_ops(${name}): expected FROM and one or more programs"
                        ", found ${ARGN}")
  endif()
  foreach(part portable_kernels xnnpack_backend custom_ops)
    get_target_property(type ${part} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY")
      message(FATAL_ERROR "executorch_add_selected_ops(${name}): libexecutorch has all operators; "
                          "find_package(executorch COMPONENTS static) finds the archives")
    endif()
  endforeach()
  set(for_types ON)
  if(ARG_ALL_TYPES)
    set(for_types OFF)
  endif()
  string(REPLACE ";" "," programs "${ARG_FROM}")
  gen_selected_ops(LIB_NAME ${name} OPS_FROM_MODEL "${programs}" ROOT_OPS "${ARG_OPS}"
                   DTYPE_SELECTIVE_BUILD ${for_types})
  generate_bindings_for_kernels(LIB_NAME ${name} LINK_WHOLE DTYPE_SELECTIVE_BUILD ${for_types})
  # The archives without what their targets ask for, which is to link their registration.
  set(whole $<TARGET_FILE:xnnpack_backend> $<TARGET_FILE:custom_ops>)
  set(libraries llm_kernels)
  if(ARG_FUSION)
    set(libraries optimized_fusion llm_kernels)
  endif()
  gen_operators_lib(LIB_NAME ${name} KERNEL_LIBS ${whole} ${libraries} DEPS executorch_runtime
                    DTYPE_SELECTIVE_BUILD ${for_types})
  add_dependencies(${name} xnnpack_backend custom_ops)
endfunction()

# merge_yaml(FUNCTIONS_YAML a.yaml FALLBACK_YAML b.yaml OUTPUT_DIR folder): <folder>/merged.yaml, the
# operators of the first file and those of the second that the first does not have.
function(merge_yaml)
  cmake_parse_arguments(ARG "" "FUNCTIONS_YAML;FALLBACK_YAML;OUTPUT_DIR" "" ${ARGN})
  _executorch_existing_files(existing ${ARG_FUNCTIONS_YAML} ${ARG_FALLBACK_YAML})
  set(arguments --functions_yaml_path=${ARG_FUNCTIONS_YAML} --output_dir=${ARG_OUTPUT_DIR})
  if(ARG_FALLBACK_YAML)
    list(APPEND arguments --fallback_yaml_path=${ARG_FALLBACK_YAML})
  endif()
  _executorch_codegen(MODULE tools.merge_yaml OUTPUT ${ARG_OUTPUT_DIR}/merged.yaml ARGUMENTS
                      ${arguments} DEPENDS ${existing})
endfunction()

# gen_custom_ops_aot_lib(LIB_NAME name KERNEL_SOURCES a.cpp ...): a shared library of custom operators
# for torch.ops.load_library(). What it registers with EXECUTORCH_LIBRARY is also known to
# executorch.runtime in the same process. Form of release 0.2: gen_custom_ops_aot_lib(name a.cpp ...)
function(gen_custom_ops_aot_lib)
  cmake_parse_arguments(ARG "" "LIB_NAME" "KERNEL_SOURCES" ${ARGN})
  if(NOT ARG_LIB_NAME)
    set(ARG_KERNEL_SOURCES ${ARGN})
    list(POP_FRONT ARG_KERNEL_SOURCES ARG_LIB_NAME)
  endif()
  find_package_torch()
  add_library(${ARG_LIB_NAME} SHARED ${ARG_KERNEL_SOURCES})
  target_link_libraries(${ARG_LIB_NAME} PRIVATE executorch_shared executorch_torch)
  target_compile_features(${ARG_LIB_NAME} PRIVATE cxx_std_20)
endfunction()
