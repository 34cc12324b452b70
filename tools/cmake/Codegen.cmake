# Registration libraries of a user's choice: operators of their own, and selections of ours.

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
