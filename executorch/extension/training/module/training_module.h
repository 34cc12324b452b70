#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/extension/training/module/joint_outputs.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace executorch::extension::training {

/// A program with methods for training (`_export_forward_backward`), and its weights:
///
///   TrainingModule module(std::move(loader));
///   SGD optimizer(module.named_parameters("forward").get(), SGDOptions{0.1});
///   for (...) {
///     auto results = module.execute_forward_backward("forward", {x, y});   // the loss, ...
///     optimizer.step(module.named_gradients("forward").get());
///   }
///
/// A method's parameters are its own memory, filled from the program or from external data
/// (`data_map_data_loader`) when it is loaded. What an optimizer writes there stays until the
/// method is unloaded; file and loaders keep what they had.
///
/// Maps have handles to the method's tensors: the next run writes new gradients to the same ones.
/// Names and tensors may be used while the method is loaded.
///
/// Errors, but for those of Module:
///   InvalidArgument  there is no such method, or it is none for training
///   InvalidProgram   what the program says of gradients and parameters cannot be, or a parameter
///                    is a constant, which nobody may write
class ET_EXPERIMENTAL TrainingModule final : public Module {
 public:
  explicit TrainingModule(std::unique_ptr<runtime::DataLoader> data_loader,
                          std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                          std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                          std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                          std::unique_ptr<runtime::DataLoader> data_map_data_loader = nullptr)
      : Module(std::move(data_loader), std::move(memory_allocator), std::move(temp_allocator),
               std::move(event_tracer), std::move(data_map_data_loader)) {}

  TrainingModule(const TrainingModule&) = delete;
  TrainingModule& operator=(const TrainingModule&) = delete;
  TrainingModule(TrainingModule&&) = delete;
  TrainingModule& operator=(TrainingModule&&) = delete;

  /// Whether there was something to unload. What was trained goes with it.
  bool unload_method(const std::string& method_name) {
    const auto found = known_.find(method_name);
    if (found != known_.end()) found->second.has_gradients = false;
    return Module::unload_method(method_name);
  }
  bool unload_forward() { return unload_method("forward"); }

  /// Runs the method: the outputs before the gradients, such as the loss.
  ET_EXPERIMENTAL runtime::Result<std::vector<runtime::EValue>> execute_forward_backward(
      const std::string& method_name, const std::vector<runtime::EValue>& input);

  /// The parameters that have gradients. Loads the method if need be.
  ET_EXPERIMENTAL runtime::Result<const std::map<std::string_view, aten::Tensor>> named_parameters(
      const std::string& method_name);

  /// The gradients of the last execute_forward_backward(); InvalidArgument if there was none, or it
  /// failed.
  ET_EXPERIMENTAL runtime::Result<const std::map<std::string_view, aten::Tensor>> named_gradients(
      const std::string& method_name);

  /// The tensors of any method that have names in the program: mutable buffers, and what lies in
  /// external data. Loads the method if need be.
  ET_EXPERIMENTAL runtime::Result<const std::map<std::string_view, aten::Tensor>> named_attributes(
      const std::string& method_name);

 private:
  struct Known {
    internal::JointOutputs joint;
    bool has_gradients = false;
  };
  runtime::Result<Known*> know(const std::string& method_name);

  std::map<std::string, Known> known_;  // methods for training
};

}  // namespace executorch::extension::training
