# PyTorch's headers and libraries, taken from the Python environment (Python_EXECUTABLE, or upstream's
# PYTHON_EXECUTABLE). Nothing is looked for until a function below is called.

# resolve_python_executable(): sets PYTHON_EXECUTABLE to the Python that build steps run.
function(resolve_python_executable)
  if(NOT PYTHON_EXECUTABLE)
    if(NOT Python_EXECUTABLE)
      find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
    endif()
    set(PYTHON_EXECUTABLE ${Python_EXECUTABLE})
  endif()
  set(PYTHON_EXECUTABLE ${PYTHON_EXECUTABLE} PARENT_SCOPE)
endfunction()

# get_torch_base_path(var): the folder of the package torch, or empty.
function(get_torch_base_path var)
  resolve_python_executable()
  # Found, not imported: that would take seconds.
  execute_process(
    COMMAND
      ${PYTHON_EXECUTABLE} -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE path
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${var} "${path}" PARENT_SCOPE)
endfunction()

# add_torch_to_cmake_prefix_path(): find_package(Torch) finds that package.
function(add_torch_to_cmake_prefix_path)
  get_torch_base_path(base)
  list(APPEND CMAKE_PREFIX_PATH ${base}/share/cmake)
  set(CMAKE_PREFIX_PATH "${CMAKE_PREFIX_PATH}" PARENT_SCOPE)
endfunction()

# find_package_torch(): defines executorch_torch, which brings torch's include folders and libraries.
function(find_package_torch)
  if(TARGET executorch_torch)
    return()
  endif()
  get_torch_base_path(base)
  if(NOT base)
    message(FATAL_ERROR "custom operators for PyTorch need the package torch in the Python "
                        "environment; set PYTHON_EXECUTABLE to a Python that has it")
  endif()
  add_library(executorch_torch INTERFACE)
  add_library(executorch_torch_headers INTERFACE)
  target_include_directories(
    executorch_torch_headers SYSTEM INTERFACE ${base}/include
                                              ${base}/include/torch/csrc/api/include)
  target_link_libraries(executorch_torch INTERFACE executorch_torch_headers)
  foreach(name torch torch_cpu c10)
    find_library(EXECUTORCH_LIB_${name} ${name} PATHS ${base}/lib NO_DEFAULT_PATH REQUIRED)
    target_link_libraries(executorch_torch INTERFACE ${EXECUTORCH_LIB_${name}})
  endforeach()
endfunction()

# Only the include folders: executorch_torch_headers.
function(find_package_torch_headers)
  find_package_torch()
endfunction()
