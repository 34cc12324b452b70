#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#define ET_MODULE_NAMESPACE module

namespace executorch::extension {

using ET_RUNTIME_NAMESPACE::Kernel;
using ET_RUNTIME_NAMESPACE::Method;
using ET_RUNTIME_NAMESPACE::MethodMeta;
using ET_RUNTIME_NAMESPACE::NamedDataMap;
using ET_RUNTIME_NAMESPACE::Program;
using runtime::LoadBackendOptionsMap;

namespace internal {
class ArenaBuffer;
class FilledPages;
class PlannedMemory;
class TemporaryPages;
}  // namespace internal

namespace ET_MODULE_NAMESPACE {

/// A program and its methods, with all the memory they need: the short way to run a .pte file.
///
///   Module module("model.pte");
///   const auto result = module.forward(make_tensor_ptr({1.0f, 2.0f}));
///   if (result.ok()) { use(result->at(0).toTensor()); }
///
/// Construction does no I/O. Whatever needs the program or a method loads it, once.
/// Functions return MemoryAllocationFailed where memory runs out, and may be called again then.
/// A Module must not be used by two threads at the same time.
class Module {
 public:
  enum class LoadMode {
    File,                      ///< read what is needed into heap memory
    Mmap,                      ///< map the file
    MmapUseMlock,              ///< map, and fail when the pages cannot be locked in memory
    MmapUseMlockIgnoreErrors,  ///< map, and try to lock
    MmapUseMadvise,            ///< map, and tell the system that the pages will be needed soon
  };

  /// The modes of releases 0.2 and 0.3: Mmap, MmapUseMlock and MmapUseMlockIgnoreErrors.
  enum class MlockConfig { NoMlock, UseMlock, UseMlockIgnoreErrors };

  // In all constructors: `data_map_path`, `data_files` and `data_map_loader` give external data
  // (.ptd); without `memory_allocator` and `temp_allocator` memory comes from malloc;
  // with `share_memory_arenas` all methods work in the same planned memory, so that running one
  // overwrites what the others left there.

  explicit Module(const std::string& file_path, const LoadMode load_mode = LoadMode::File,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  bool share_memory_arenas = false);

  explicit Module(const std::string& file_path, const std::string& data_map_path,
                  const LoadMode load_mode = LoadMode::File,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  bool share_memory_arenas = false);

  explicit Module(const std::string& file_path, std::vector<std::string> data_files,
                  const LoadMode load_mode = LoadMode::File,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  bool share_memory_arenas = false);

  explicit Module(std::unique_ptr<runtime::DataLoader> data_loader,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr,
                  bool share_memory_arenas = false);

  /// Shares a loaded program, and so its constants, with other modules.
  explicit Module(std::shared_ptr<Program> program,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr,
                  bool share_memory_arenas = false);

  /// As in releases 0.2 and 0.3.
  explicit Module(const std::string& file_path, MlockConfig mlock_config,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr);

  /// As in releases 0.2 and 0.3. A template, so that a null third argument means an allocator.
  template <typename Tracer,
            typename = std::enable_if_t<std::is_base_of_v<runtime::EventTracer, Tracer>>>
  Module(std::unique_ptr<runtime::DataLoader> data_loader,
         std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
         std::unique_ptr<Tracer> event_tracer)
      : Module(std::move(data_loader), std::move(memory_allocator), nullptr,
               std::unique_ptr<runtime::EventTracer>(std::move(event_tracer))) {}

  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&&) noexcept;
  Module& operator=(Module&&) = delete;
  virtual ~Module();

  /// Loads the program and the external data, unless they are loaded already.
  ET_NODISCARD virtual runtime::Error load(
      const Program::Verification verification = Program::Verification::Minimal);

  /// The same, with options for backends. The options must outlive the module.
  ET_NODISCARD virtual runtime::Error load(
      const LoadBackendOptionsMap& backend_options,
      const Program::Verification verification = Program::Verification::Minimal);

  const LoadBackendOptionsMap& backend_options() const { return backend_options_; }

  virtual bool is_loaded() const { return program_ != nullptr; }

  /// Null until loaded.
  std::shared_ptr<Program> program() const { return program_; }

  runtime::Result<size_t> num_methods();
  runtime::Result<std::unordered_set<std::string>> method_names();

  /// Loads a method, unless it is loaded already: then the arguments are not looked at.
  ///   planned_memory   its arenas, of the caller, who keeps them while the method is loaded; null:
  ///                    the module allocates them
  ///   event_tracer, backend_options   instead of the module's; null: the module's
  ///   kernel_registry  used instead of the process-wide registry unless empty
  /// InvalidArgument when there is no such method; otherwise the errors of Program::load_method().
  ET_NODISCARD runtime::Error load_method(const std::string& method_name,
                                          runtime::HierarchicalAllocator* planned_memory = nullptr,
                                          torch::executor::EventTracer* event_tracer = nullptr,
                                          const LoadBackendOptionsMap* backend_options = nullptr,
                                          std::vector<Kernel> kernel_registry = {});

  ET_DEPRECATED ET_NODISCARD runtime::Error load_method(
      const std::string& method_name, torch::executor::EventTracer* event_tracer) {
    return load_method(method_name, nullptr, event_tracer);
  }

  /// Frees a method with its memory: tensors among its outputs become invalid. False if it was not
  /// loaded.
  bool unload_method(const std::string& method_name) { return methods_.erase(method_name) != 0; }

  /// The method, loaded if it was not. Owned by the module until it is unloaded.
  ET_DEPRECATED runtime::Result<Method*> method(const std::string& method_name);

  ET_NODISCARD runtime::Error load_forward(runtime::HierarchicalAllocator* planned_memory = nullptr,
                                           torch::executor::EventTracer* event_tracer = nullptr,
                                           const LoadBackendOptionsMap* backend_options = nullptr,
                                           std::vector<Kernel> kernel_registry = {}) {
    return load_method("forward", planned_memory, event_tracer, backend_options,
                       std::move(kernel_registry));
  }

  ET_DEPRECATED ET_NODISCARD runtime::Error load_forward(
      torch::executor::EventTracer* event_tracer) {
    return load_forward(nullptr, event_tracer);
  }

  bool unload_forward() { return unload_method("forward"); }

  bool is_method_loaded(const std::string& method_name) const {
    return methods_.count(method_name) != 0;
  }

  runtime::Result<MethodMeta> method_meta(const std::string& method_name);

  /// The work that loops may do in one execute() of any method, whether it is loaded yet or not:
  /// see Method::set_max_work().
  void set_max_work(uint64_t units);

  /// Fits the physical memory of a method to the sizes and to the state after its last execution.
  /// execute() does so by itself; those who call Method::execute() may call this afterwards. No
  /// address changes. Does nothing if the method is not loaded, or lies in memory of the caller's.
  void fit_memory(const std::string& method_name);

  // Running. Inputs are set from index 0 on; fewer than the method takes are enough when the others
  // were set before. Tensors among the outputs are views of the method's memory: the next run
  // overwrites them.

  virtual runtime::Result<std::vector<runtime::EValue>> execute(
      const std::string& method_name, const std::vector<runtime::EValue>& input_values);

  runtime::Result<std::vector<runtime::EValue>> execute(const std::string& method_name,
                                                        const runtime::EValue& input_value) {
    return execute(method_name, std::vector<runtime::EValue>{input_value});
  }

  runtime::Result<std::vector<runtime::EValue>> execute(const std::string& method_name) {
    return execute(method_name, std::vector<runtime::EValue>{});
  }

  runtime::Result<std::vector<runtime::EValue>> execute(
      const std::string& method_name, std::initializer_list<runtime::EValue> input_values) {
    return execute(method_name, std::vector<runtime::EValue>(input_values));
  }

  /// The first output; InvalidArgument when there is none.
  runtime::Result<runtime::EValue> get(const std::string& method_name,
                                       const std::vector<runtime::EValue>& input_values);

  runtime::Result<runtime::EValue> get(const std::string& method_name,
                                       const runtime::EValue& input_value) {
    return get(method_name, std::vector<runtime::EValue>{input_value});
  }

  runtime::Result<runtime::EValue> get(const std::string& method_name) {
    return get(method_name, std::vector<runtime::EValue>{});
  }

  runtime::Result<runtime::EValue> get(const std::string& method_name,
                                       std::initializer_list<runtime::EValue> input_values) {
    return get(method_name, std::vector<runtime::EValue>(input_values));
  }

  runtime::Result<std::vector<runtime::EValue>> forward(
      const std::vector<runtime::EValue>& input_values) {
    return execute("forward", input_values);
  }

  runtime::Result<std::vector<runtime::EValue>> forward(const runtime::EValue& input_value) {
    return execute("forward", input_value);
  }

  runtime::Result<std::vector<runtime::EValue>> forward() { return execute("forward"); }

  runtime::Result<std::vector<runtime::EValue>> forward(
      std::initializer_list<runtime::EValue> input_values) {
    return execute("forward", input_values);
  }

  // Inputs and outputs one by one, before and after execute(). Functions without a method's name
  // are for "forward".

  ET_NODISCARD runtime::Error set_input(const std::string& method_name,
                                        const runtime::EValue& input_value, size_t input_index);

  ET_NODISCARD runtime::Error set_input(const runtime::EValue& input_value, size_t input_index) {
    return set_input("forward", input_value, input_index);
  }

  /// Needs as many values as the method has inputs.
  ET_NODISCARD runtime::Error set_inputs(const std::string& method_name,
                                         const std::vector<runtime::EValue>& input_values);

  ET_NODISCARD runtime::Error set_inputs(const std::vector<runtime::EValue>& input_values) {
    return set_inputs("forward", input_values);
  }

  /// Makes the method write an output to the memory of a tensor; InvalidArgument for other values,
  /// and for a tensor of another element type; InvalidState when the output lies in planned memory.
  ET_NODISCARD runtime::Error set_output(const std::string& method_name,
                                         runtime::EValue output_value, size_t output_index = 0);

  ET_NODISCARD runtime::Error set_output(runtime::EValue output_value, size_t output_index = 0) {
    return set_output("forward", std::move(output_value), output_index);
  }

  /// Needs as many values as the method has outputs.
  ET_NODISCARD runtime::Error set_outputs(const std::string& method_name,
                                          const std::vector<runtime::EValue>& output_values);

  ET_NODISCARD runtime::Error set_outputs(const std::vector<runtime::EValue>& output_values) {
    return set_outputs("forward", output_values);
  }

  runtime::Result<std::vector<runtime::EValue>> get_outputs(const std::string& method_name);

  runtime::Result<std::vector<runtime::EValue>> get_outputs() { return get_outputs("forward"); }

  runtime::Result<runtime::EValue> get_output(const std::string& method_name,
                                              size_t output_index = 0);

  runtime::Result<runtime::EValue> get_output(size_t output_index = 0) {
    return get_output("forward", output_index);
  }

  /// The tracer given at construction, which the module keeps; null without one.
  runtime::EventTracer* event_tracer() const { return event_tracer_.get(); }

  /// Always empty; a tracer knows its own debug buffer.
  ET_DEPRECATED runtime::Span<uint8_t> debug_buffer() { return {}; }

 protected:
  /// A method and the memory that it uses. Members are destroyed in reverse order: the method
  /// first.
  struct MethodHolder {
    MethodHolder();
    MethodHolder(MethodHolder&&) noexcept;
    ~MethodHolder();

    std::vector<Kernel> kernel_registry;
    std::unique_ptr<internal::PlannedMemory> planned_memory;
    std::unique_ptr<runtime::MemoryAllocator> method_allocator;
    std::unique_ptr<runtime::MemoryManager> memory_manager;
    std::unique_ptr<Method> method;
    std::unique_ptr<internal::TemporaryPages> temporary_pages;
    std::unique_ptr<internal::FilledPages> filled_pages;
  };

 private:
  runtime::Error load_program(Program::Verification verification);
  runtime::Error load_data_maps();
  runtime::Result<MethodHolder> make_method(const std::string& method_name,
                                            runtime::HierarchicalAllocator* planned_memory,
                                            runtime::EventTracer* event_tracer,
                                            const LoadBackendOptionsMap* backend_options,
                                            std::vector<Kernel> kernel_registry);
  runtime::Result<Method*> loaded_method(const std::string& method_name);
  runtime::Error need_program();

  // Whatever is declared later may point into what is declared earlier.
  std::string file_path_;
  std::vector<std::string> data_files_;
  LoadMode load_mode_ = LoadMode::File;
  bool share_memory_arenas_ = false;
  bool data_maps_loaded_ = false;
  std::unique_ptr<runtime::MemoryAllocator> memory_allocator_;
  std::unique_ptr<runtime::MemoryAllocator> temp_allocator_;
  std::unique_ptr<runtime::EventTracer> event_tracer_;
  std::unique_ptr<runtime::DataLoader> data_loader_;
  std::shared_ptr<Program> program_;
  std::vector<std::unique_ptr<runtime::DataLoader>> data_map_loaders_;
  std::vector<std::unique_ptr<NamedDataMap>> data_maps_;
  const NamedDataMap* named_data_map_ = nullptr;
  LoadBackendOptionsMap backend_options_;
  std::unique_ptr<std::vector<internal::ArenaBuffer>> shared_arenas_;
  std::optional<uint64_t> max_work_;

 protected:
  std::unordered_map<std::string, MethodHolder> methods_;
};

}  // namespace ET_MODULE_NAMESPACE

using ET_MODULE_NAMESPACE::Module;

}  // namespace executorch::extension

namespace torch::executor {
using ::executorch::extension::Module;
}  // namespace torch::executor
