#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/filled_pages.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/module/planned_memory.h>
#include <executorch/extension/module/temporary_pages.h>
#include <executorch/extension/named_data_map/merged_data_map.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/runtime.h>

#include <optional>

namespace executorch::extension::ET_MODULE_NAMESPACE {

using merged_data_map::MergedDataMap;
using runtime::DataLoader;
using runtime::Error;
using runtime::EValue;
using runtime::EventTracer;
using runtime::HierarchicalAllocator;
using runtime::MemoryAllocator;
using runtime::MemoryManager;
using runtime::Result;
using runtime::Span;

namespace {

Result<std::unique_ptr<DataLoader>> open_mapped(const std::string& path,
                                                MmapDataLoader::MlockConfig config) {
  ET_ASSIGN_OR_RETURN(MmapDataLoader loader, MmapDataLoader::from(path.c_str(), config));
  return std::unique_ptr<DataLoader>(std::make_unique<MmapDataLoader>(std::move(loader)));
}

Result<std::unique_ptr<DataLoader>> open_file(const std::string& path, Module::LoadMode mode) {
  using Config = MmapDataLoader::MlockConfig;
  switch (mode) {
    case Module::LoadMode::File:
      break;
    case Module::LoadMode::Mmap:
      return open_mapped(path, Config::NoMlock);
    case Module::LoadMode::MmapUseMlock:
      return open_mapped(path, Config::UseMlock);
    case Module::LoadMode::MmapUseMlockIgnoreErrors:
      return open_mapped(path, Config::UseMlockIgnoreErrors);
    case Module::LoadMode::MmapUseMadvise:
      return open_mapped(path, Config::UseMadvise);
  }
  ET_ASSIGN_OR_RETURN(FileDataLoader loader, FileDataLoader::from(path.c_str()));
  return std::unique_ptr<DataLoader>(std::make_unique<FileDataLoader>(std::move(loader)));
}

Module::LoadMode load_mode_of(Module::MlockConfig config) {
  switch (config) {
    case Module::MlockConfig::NoMlock:
      return Module::LoadMode::Mmap;
    case Module::MlockConfig::UseMlock:
      return Module::LoadMode::MmapUseMlock;
    case Module::MlockConfig::UseMlockIgnoreErrors:
      break;
  }
  return Module::LoadMode::MmapUseMlockIgnoreErrors;
}

/// A program together with the loader that it reads from.
struct LoadedProgram {
  std::unique_ptr<DataLoader> loader;
  std::optional<Program> program;
};

// Every function below that allocates is called through this, so that all of Module returns errors.
template <class F>
auto guarded(const F& f) {
  return runtime::catch_allocation_failure("Module", f);
}

}  // namespace

Module::MethodHolder::MethodHolder() = default;
Module::MethodHolder::MethodHolder(MethodHolder&&) noexcept = default;
Module::MethodHolder::~MethodHolder() = default;

Module::Module(const std::string& file_path, const LoadMode load_mode,
               std::unique_ptr<EventTracer> event_tracer,
               std::unique_ptr<MemoryAllocator> memory_allocator,
               std::unique_ptr<MemoryAllocator> temp_allocator, bool share_memory_arenas)
    : Module(file_path, std::vector<std::string>(), load_mode, std::move(event_tracer),
             std::move(memory_allocator), std::move(temp_allocator), share_memory_arenas) {}

Module::Module(const std::string& file_path, const std::string& data_map_path,
               const LoadMode load_mode, std::unique_ptr<EventTracer> event_tracer,
               std::unique_ptr<MemoryAllocator> memory_allocator,
               std::unique_ptr<MemoryAllocator> temp_allocator, bool share_memory_arenas)
    : Module(file_path,
             data_map_path.empty() ? std::vector<std::string>()
                                   : std::vector<std::string>{data_map_path},
             load_mode, std::move(event_tracer), std::move(memory_allocator),
             std::move(temp_allocator), share_memory_arenas) {}

Module::Module(const std::string& file_path, std::vector<std::string> data_files,
               const LoadMode load_mode, std::unique_ptr<EventTracer> event_tracer,
               std::unique_ptr<MemoryAllocator> memory_allocator,
               std::unique_ptr<MemoryAllocator> temp_allocator, bool share_memory_arenas)
    : Module(std::unique_ptr<DataLoader>(), std::move(memory_allocator), std::move(temp_allocator),
             std::move(event_tracer), nullptr, share_memory_arenas) {
  file_path_ = file_path;
  data_files_ = std::move(data_files);
  load_mode_ = load_mode;
}

Module::Module(std::unique_ptr<DataLoader> data_loader,
               std::unique_ptr<MemoryAllocator> memory_allocator,
               std::unique_ptr<MemoryAllocator> temp_allocator,
               std::unique_ptr<EventTracer> event_tracer,
               std::unique_ptr<DataLoader> data_map_loader, bool share_memory_arenas)
    : share_memory_arenas_(share_memory_arenas),
      memory_allocator_(std::move(memory_allocator)),
      temp_allocator_(temp_allocator != nullptr ? std::move(temp_allocator)
                                                : std::make_unique<MallocMemoryAllocator>()),
      event_tracer_(std::move(event_tracer)),
      data_loader_(std::move(data_loader)) {
  runtime::runtime_init();
  if (data_map_loader != nullptr) data_map_loaders_.push_back(std::move(data_map_loader));
}

Module::Module(std::shared_ptr<Program> program, std::unique_ptr<MemoryAllocator> memory_allocator,
               std::unique_ptr<MemoryAllocator> temp_allocator,
               std::unique_ptr<EventTracer> event_tracer,
               std::unique_ptr<DataLoader> data_map_loader, bool share_memory_arenas)
    : Module(std::unique_ptr<DataLoader>(), std::move(memory_allocator), std::move(temp_allocator),
             std::move(event_tracer), std::move(data_map_loader), share_memory_arenas) {
  program_ = std::move(program);
}

Module::Module(const std::string& file_path, MlockConfig mlock_config,
               std::unique_ptr<EventTracer> event_tracer)
    : Module(file_path, load_mode_of(mlock_config), std::move(event_tracer)) {}

Module::Module(Module&&) noexcept = default;
Module::~Module() = default;

Error Module::load(const Program::Verification verification) {
  ET_CHECK_OK_OR_RETURN_ERROR(guarded([&] { return load_program(verification); }));
  return guarded([&] { return load_data_maps(); });
}

Error Module::load(const LoadBackendOptionsMap& backend_options,
                   const Program::Verification verification) {
  backend_options_ = backend_options;
  return load(verification);
}

Error Module::load_program(Program::Verification verification) {
  if (program_ != nullptr) return Error::Ok;
  if (data_loader_ == nullptr) {
    ET_CHECK_OR_RETURN_ERROR(!file_path_.empty(), InvalidArgument,
                             "Module: there is neither a file, a loader nor a program");
    ET_ASSIGN_OR_RETURN(data_loader_, open_file(file_path_, load_mode_));
  }
  // First, so that a failure leaves the loader where it is.
  auto loaded = std::make_shared<LoadedProgram>();
  auto program = Program::load(data_loader_.get(), verification);
  if (!program.ok()) {
    ET_LOG(Error, "Module: cannot load the program%s%s: %s", file_path_.empty() ? "" : " ",
           file_path_.c_str(), runtime::to_string(program.error()));
    return program.error();
  }
  loaded->loader = std::move(data_loader_);
  loaded->program.emplace(std::move(program.get()));
  program_ = std::shared_ptr<Program>(loaded, &*loaded->program);
  return Error::Ok;
}

Error Module::load_data_maps() {
  if (data_maps_loaded_) return Error::Ok;
  while (data_map_loaders_.size() < data_files_.size()) {
    ET_ASSIGN_OR_RETURN(auto loader, open_file(data_files_[data_map_loaders_.size()], load_mode_));
    data_map_loaders_.push_back(std::move(loader));
  }
  std::vector<std::unique_ptr<NamedDataMap>> maps;
  std::vector<const NamedDataMap*> pointers;
  for (const auto& loader : data_map_loaders_) {
    auto map = FlatTensorDataMap::load(loader.get());
    if (!map.ok()) {
      ET_LOG(Error, "Module: cannot load external data%s%s: %s", data_files_.empty() ? "" : " ",
             data_files_.empty() ? "" : data_files_[maps.size()].c_str(),
             runtime::to_string(map.error()));
      return map.error();
    }
    maps.push_back(std::make_unique<FlatTensorDataMap>(std::move(map.get())));
    pointers.push_back(maps.back().get());
  }
  if (maps.size() > 1) {
    ET_ASSIGN_OR_RETURN(MergedDataMap merged,
                        MergedDataMap::load({pointers.data(), pointers.size()}));
    maps.push_back(std::make_unique<MergedDataMap>(std::move(merged)));
  }
  data_maps_ = std::move(maps);
  named_data_map_ = data_maps_.empty() ? nullptr : data_maps_.back().get();
  data_maps_loaded_ = true;
  return Error::Ok;
}

Error Module::need_program() {
  return is_loaded() && data_maps_loaded_ ? Error::Ok : load();
}

Result<size_t> Module::num_methods() {
  ET_CHECK_OK_OR_RETURN_ERROR(need_program());
  return program_->num_methods();
}

Result<std::unordered_set<std::string>> Module::method_names() {
  ET_CHECK_OK_OR_RETURN_ERROR(need_program());
  return guarded([&]() -> Result<std::unordered_set<std::string>> {
    std::unordered_set<std::string> names;
    for (size_t i = 0; i < program_->num_methods(); ++i) {
      ET_ASSIGN_OR_RETURN(const char* name, program_->get_method_name(i));
      names.insert(name);
    }
    return names;
  });
}

Result<Module::MethodHolder> Module::make_method(const std::string& method_name,
                                                 HierarchicalAllocator* planned_memory,
                                                 EventTracer* event_tracer,
                                                 const LoadBackendOptionsMap* backend_options,
                                                 std::vector<Kernel> kernel_registry) {
  MethodHolder holder;
  holder.kernel_registry = std::move(kernel_registry);
  if (planned_memory == nullptr) {
    if (share_memory_arenas_ && shared_arenas_ == nullptr) {
      ET_ASSIGN_OR_RETURN(auto arenas, internal::make_shared_arenas(*program_));
      shared_arenas_ = std::make_unique<std::vector<internal::ArenaBuffer>>(std::move(arenas));
    }
    ET_ASSIGN_OR_RETURN(const MethodMeta meta, program_->method_meta(method_name.c_str()));
    static const std::vector<internal::ArenaBuffer> none;
    ET_ASSIGN_OR_RETURN(
        holder.planned_memory,
        internal::PlannedMemory::create(meta, shared_arenas_ == nullptr ? none : *shared_arenas_));
    planned_memory = holder.planned_memory->allocator();
  }
  if (memory_allocator_ == nullptr) {
    holder.method_allocator = std::make_unique<MallocMemoryAllocator>();
  }
  holder.memory_manager = std::make_unique<MemoryManager>(
      memory_allocator_ == nullptr ? holder.method_allocator.get() : memory_allocator_.get(),
      planned_memory, temp_allocator_.get());
  ET_ASSIGN_OR_RETURN(Method method,
                      program_->load_method(method_name.c_str(), holder.memory_manager.get(),
                                            event_tracer, named_data_map_, backend_options,
                                            Span<const Kernel>(holder.kernel_registry.data(),
                                                               holder.kernel_registry.size())));
  holder.method = std::make_unique<Method>(std::move(method));
  if (max_work_) holder.method->set_max_work(*max_work_);
  if (holder.planned_memory != nullptr && shared_arenas_ == nullptr) {
    holder.temporary_pages =
        std::make_unique<internal::TemporaryPages>(holder.method->temporaries());
  }
  if (holder.planned_memory != nullptr) {
    const std::vector<Span<uint8_t>> arenas = holder.planned_memory->cpu_arenas();
    holder.filled_pages = std::make_unique<internal::FilledPages>(
        Span<const Span<uint8_t>>(arenas.data(), arenas.size()));
  }
  return holder;
}

Error Module::load_method(const std::string& method_name, HierarchicalAllocator* planned_memory,
                          torch::executor::EventTracer* event_tracer,
                          const LoadBackendOptionsMap* backend_options,
                          std::vector<Kernel> kernel_registry) {
  if (is_method_loaded(method_name)) return Error::Ok;
  ET_CHECK_OK_OR_RETURN_ERROR(need_program());
  const Error error = guarded([&]() -> Error {
    ET_ASSIGN_OR_RETURN(
        MethodHolder holder,
        make_method(method_name, planned_memory,
                    event_tracer == nullptr ? event_tracer_.get() : event_tracer,
                    backend_options == nullptr ? &backend_options_ : backend_options,
                    std::move(kernel_registry)));
    methods_.emplace(method_name, std::move(holder));
    return Error::Ok;
  });
  if (error != Error::Ok) {
    ET_LOG(Error, "Module: cannot load method '%s': %s", method_name.c_str(),
           runtime::to_string(error));
  }
  return error;
}

Result<Method*> Module::loaded_method(const std::string& method_name) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  return methods_.at(method_name).method.get();
}

Result<Method*> Module::method(const std::string& method_name) {
  return loaded_method(method_name);
}

Result<MethodMeta> Module::method_meta(const std::string& method_name) {
  ET_CHECK_OK_OR_RETURN_ERROR(need_program());
  return program_->method_meta(method_name.c_str());
}

void Module::set_max_work(uint64_t units) {
  max_work_ = units;
  for (auto& [name, holder] : methods_) holder.method->set_max_work(units);
}

void Module::fit_memory(const std::string& method_name) {
  const auto found = methods_.find(method_name);
  if (found == methods_.end()) return;
  const MethodHolder& holder = found->second;
  if (holder.temporary_pages != nullptr) holder.temporary_pages->fit();
  if (holder.filled_pages != nullptr) holder.filled_pages->collapse();
}

Result<std::vector<EValue>> Module::execute(const std::string& method_name,
                                            const std::vector<EValue>& input_values) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  for (size_t i = 0; i < input_values.size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(method->set_input(input_values[i], i));
  }
  ET_CHECK_OK_OR_RETURN_ERROR(method->execute());
  fit_memory(method_name);
  return get_outputs(method_name);
}

Result<EValue> Module::get(const std::string& method_name,
                           const std::vector<EValue>& input_values) {
  ET_ASSIGN_OR_RETURN(const auto outputs, execute(method_name, input_values));
  ET_CHECK_OR_RETURN_ERROR(!outputs.empty(), InvalidArgument, "Module: '%s' has no output",
                           method_name.c_str());
  return outputs[0];
}

Error Module::set_input(const std::string& method_name, const EValue& input_value,
                        size_t input_index) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  return method->set_input(input_value, input_index);
}

Error Module::set_inputs(const std::string& method_name, const std::vector<EValue>& input_values) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  return method->set_inputs(aten::ArrayRef<EValue>(input_values.data(), input_values.size()));
}

Error Module::set_output(const std::string& method_name, EValue output_value, size_t output_index) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  const auto given = output_value.tryToTensor();
  ET_CHECK_OR_RETURN_ERROR(given.ok(), InvalidArgument,
                           "Module: output %zu of '%s' can only be set to a tensor", output_index,
                           method_name.c_str());
  const auto& tensor = *given;
  const auto info = method->method_meta().output_tensor_meta(output_index);
  ET_CHECK_OR_RETURN_ERROR(
      !info.ok() || info->scalar_type() == tensor.scalar_type(), InvalidArgument,
      "Module: output %zu of '%s' has elements of type %s, the tensor for it "
      "of type %s",
      output_index, method_name.c_str(), runtime::toString(info->scalar_type()),
      runtime::toString(tensor.scalar_type()));
  ET_ASSIGN_OR_RETURN(void* const data, runtime::internal::writable_data(tensor));
  return method->set_output_data_ptr(data, tensor.nbytes(), output_index);
}

Error Module::set_outputs(const std::string& method_name,
                          const std::vector<EValue>& output_values) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  ET_CHECK_OR_RETURN_ERROR(output_values.size() == method->outputs_size(), InvalidArgument,
                           "Module: %zu values for the %zu outputs of '%s'", output_values.size(),
                           method->outputs_size(), method_name.c_str());
  for (size_t i = 0; i < output_values.size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(set_output(method_name, output_values[i], i));
  }
  return Error::Ok;
}

Result<std::vector<EValue>> Module::get_outputs(const std::string& method_name) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  return guarded([&]() -> Result<std::vector<EValue>> {
    std::vector<EValue> outputs(method->outputs_size());
    ET_CHECK_OK_OR_RETURN_ERROR(method->get_outputs(outputs.data(), outputs.size()));
    return outputs;
  });
}

Result<EValue> Module::get_output(const std::string& method_name, size_t output_index) {
  ET_ASSIGN_OR_RETURN(Method * method, loaded_method(method_name));
  ET_CHECK_OR_RETURN_ERROR(output_index < method->outputs_size(), InvalidArgument,
                           "Module: output %zu asked for, '%s' has %zu", output_index,
                           method_name.c_str(), method->outputs_size());
  return method->get_output(output_index);
}

}  // namespace executorch::extension::ET_MODULE_NAMESPACE
