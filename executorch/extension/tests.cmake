et_cxx_test(
  extension_data_loader_test SOURCES data_loader/data_loader_test.cpp
  EXTRA_LIBS extension_data_loader)
et_cxx_test(
  extension_memory_allocator_test SOURCES memory_allocator/memory_allocator_test.cpp
  EXTRA_LIBS extension_memory_allocator)
et_cxx_test(
  extension_tensor_test SOURCES tensor/tensor_ptr_test.cpp
  EXTRA_LIBS extension_tensor)
et_cxx_test(
  extension_flat_tensor_test SOURCES flat_tensor/flat_tensor_test.cpp
  EXTRA_LIBS extension_flat_tensor extension_named_data_map extension_tensor program_schema)
et_cxx_test(
  extension_evalue_util_test SOURCES evalue_util/print_evalue_test.cpp
  EXTRA_LIBS extension_evalue_util extension_tensor)
et_cxx_test(
  extension_threadpool_test SOURCES threadpool/threadpool_test.cpp
  EXTRA_LIBS extension_threadpool)
et_cxx_test(
  extension_module_threads_test SOURCES module/module_threads_test.cpp
  EXTRA_LIBS extension_module_static extension_tensor portable_ops_lib)
et_cxx_test(
  extension_filled_pages_test SOURCES module/filled_pages_test.cpp
  EXTRA_LIBS extension_module_static)
et_cxx_test(
  extension_temporary_pages_test SOURCES module/temporary_pages_test.cpp
  EXTRA_LIBS extension_module_static)
et_cxx_test(
  extension_module_test SOURCES module/module_test.cpp
  EXTRA_LIBS extension_module extension_runner_util program_schema)
if(TARGET executor_testing)
  et_cxx_test(
    extension_method_state_test SOURCES module/method_state_test.cpp
    EXTRA_LIBS extension_module_static extension_tensor executor_testing portable_ops_lib)
endif()
if(TARGET executor_testing)
  et_cxx_test(
    extension_training_test
    SOURCES training/module/training_module_test.cpp training/module/state_dict_util_test.cpp
            training/optimizer/adamw_test.cpp training/optimizer/sgd_test.cpp
    EXTRA_LIBS extension_training executor_testing portable_ops_lib)
endif()
et_cxx_test(
  bundled_module_test SOURCES module/bundled_module_test.cpp
  EXTRA_LIBS bundled_module extension_module devtools_schema portable_ops_lib)

if(TARGET nlohmann_json::nlohmann_json)
  et_cxx_test(
    basic_tokenizer_test SOURCES ${EXECUTORCH_ROOT}/examples/llm_manual/basic_tokenizer_test.cpp
    EXTRA_LIBS nlohmann_json::nlohmann_json)
endif()

if(TARGET extension_command AND TARGET executor_testing)
  et_cxx_test(
    extension_command_test SOURCES command/command_test.cpp
    EXTRA_LIBS extension_command executor_testing)
endif()
if(TARGET executor_runner)
  find_package(GTest REQUIRED)
  et_executable(
    executor_runner_test SOURCES executor_runner/executor_runner_test.cpp
    DEPS program_schema GTest::gtest)
  target_compile_options(executor_runner_test PRIVATE -O0)
  add_test(NAME executor_runner_test COMMAND executor_runner_test $<TARGET_FILE:executor_runner>)
endif()

# Kernels called with PyTorch's tensors, as C++17: the oldest standard of both.
if(EXECUTORCH_BUILD_PYBIND)
  find_package_torch()
  et_cxx_test(
    extension_aten_util_test CXX17 SOURCES aten_util/aten_util_test.cpp
    EXTRA_LIBS extension_aten_util executorch_torch)
endif()
