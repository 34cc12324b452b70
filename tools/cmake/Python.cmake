# What the build adds to the Python package: native modules, libexecutorch, the table of operators, the
# command. In a checkout it lies beside the sources, so that the package works as it is; the build of a
# wheel leaves the sources alone and collects it below build/python, as the install component `python`.
if(SKBUILD)
  set(EXECUTORCH_PYTHON_DIR ${CMAKE_CURRENT_BINARY_DIR}/python)
else()
  set(EXECUTORCH_PYTHON_DIR ${EXECUTORCH_ROOT})
endif()
if(NOT EXECUTORCH_BUILD_PYBIND)
  return()
endif()

# Examples that need nothing but the package, for `python -m executorch.examples`; with EXECUTORCH_WASM, a
# file that was built before (CMakePresets.json, wasm), that of browsers as well.
install(
  DIRECTORY ${EXECUTORCH_ROOT}/examples/browser ${EXECUTORCH_ROOT}/examples/ray
  DESTINATION executorch/examples COMPONENT python EXCLUDE_FROM_ALL
  PATTERN __pycache__ EXCLUDE)
if(EXECUTORCH_WASM)
  install(FILES ${EXECUTORCH_WASM} DESTINATION executorch/extension/wasm COMPONENT python EXCLUDE_FROM_ALL)
endif()

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT nanobind_DIR AND NOT nanobind_ROOT)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(nanobind CONFIG REQUIRED)

# et_python_module(target executorch/room/_module SOURCES a.cpp ... DEPS targets ...)
function(et_python_module target module)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  get_filename_component(folder ${module} DIRECTORY)
  get_filename_component(name ${module} NAME)
  nanobind_add_module(${target} NB_STATIC NB_SUPPRESS_WARNINGS NOSTRIP ${ARG_SOURCES})
  set_target_properties(
    ${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
                         OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${EXECUTORCH_PYTHON_DIR}/${folder})
  target_link_libraries(${target} PRIVATE executorch_private_flags ${ARG_DEPS})
  install(TARGETS ${target} LIBRARY DESTINATION ${folder} COMPONENT python EXCLUDE_FROM_ALL)
endfunction()
