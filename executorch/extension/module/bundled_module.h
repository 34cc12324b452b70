#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <executorch/extension/module/module.h>

#define ET_BUNDLED_MODULE_NAMESPACE bundled_module

namespace executorch::extension {

using ET_MODULE_NAMESPACE::Module;

namespace ET_BUNDLED_MODULE_NAMESPACE {

/// A module whose program came with test cases, in a .bpte file:
///
///   auto module = BundledModule::from_file("model.bpte");
///   (*module)->execute("forward", 0);
///   (*module)->verify_method_outputs("forward", 0);   // Ok, or NotFound where outputs differ
class BundledModule : public Module {
 public:
  /// `bundled_program_ptr` is a whole .bpte file, for which bundled_program::get_program_data()
  /// returned Ok; borrowed.
  explicit BundledModule(const void* bundled_program_ptr,
                         std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                         std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                         std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                         std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr);
  BundledModule(const BundledModule&) = delete;
  BundledModule& operator=(const BundledModule&) = delete;

  /// Reads the whole file and verifies it.
  ///   AccessFailed      it cannot be read
  ///   NotSupported      not a bundled program
  ///   InvalidArgument   a damaged one
  static runtime::Result<std::unique_ptr<BundledModule>> from_file(
      const std::string& file_path,
      std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
      std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
      std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
      std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr);

  /// Sets the method's inputs to those of its test case `testset_idx`.
  runtime::Error load_inputs(const std::string& method_name, size_t testset_idx);

  using Module::execute;
  /// Runs the method on the inputs of its test case `testset_idx`.
  runtime::Result<std::vector<runtime::EValue>> execute(const std::string& method_name,
                                                        size_t testset_idx);

  /// Whether the outputs of the last run are what that test case expects; errors are those of
  /// bundled_program::verify_method_outputs().
  runtime::Error verify_method_outputs(const std::string& method_name, size_t testset_idx,
                                       double rtol = 1e-5, double atol = 1e-8);

 private:
  BundledModule(const void* bundle, std::unique_ptr<runtime::DataLoader> program,
                std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
                std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
                std::unique_ptr<runtime::EventTracer> event_tracer,
                std::unique_ptr<runtime::DataLoader> data_map_loader);

  const void* bundle_;  // of from_file() owned by the program's loader
};

}  // namespace ET_BUNDLED_MODULE_NAMESPACE

using ET_BUNDLED_MODULE_NAMESPACE::BundledModule;

}  // namespace executorch::extension
