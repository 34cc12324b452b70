#include "whole_run.h"

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/runner_util/inputs.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "failing_heap.h"

namespace {

using namespace executorch::extension;
using namespace executorch::runtime;
using failing_heap::NoFailure;

/// Memory for outputs that the program does not place.
class OutputMemory {
 public:
  Error give(Method& method) {
    const MethodMeta meta = method.method_meta();
    for (size_t i = 0; i < meta.num_outputs(); ++i) {
      const auto info = meta.output_tensor_meta(i);
      if (!info.ok() || info->is_memory_planned()) continue;
      uint8_t* memory = nullptr;
      {
        const NoFailure none;
        memory = memory_.emplace_back(new uint8_t[info->nbytes() + 1]()).get();
      }
      // A constant that is returned has memory of its own.
      (void)method.set_output_data_ptr(memory, info->nbytes(), i);
    }
    return Error::Ok;
  }

 private:
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
};

template <typename T>
void append_all(const executorch::aten::Tensor& tensor, Outputs& outputs) {
  const T* const data = tensor.const_data_ptr<T>();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    if constexpr (executorch::runtime::is_floating_point<T>::value) {
      outputs.push_back(static_cast<double>(static_cast<float>(data[i])));
    } else {
      outputs.push_back(static_cast<double>(data[i]));
    }
  }
}

void append(const EValue& value, Outputs& outputs) {
  const NoFailure none;
  if (value.isInt()) outputs.push_back(static_cast<double>(value.toInt()));
  if (!value.isTensor()) return;
  const auto& tensor = value.toTensor();
  switch (tensor.scalar_type()) {
#define APPEND(ctype, name)                \
  case executorch::aten::ScalarType::name: \
    return append_all<ctype>(tensor, outputs);
    ET_FORALL_REALHBBF16_TYPES(APPEND)
#undef APPEND
    default:
      return;
  }
}

class ModuleRun final : public WholeRun {
 public:
  ModuleRun(const ProgramFile& file, Module::LoadMode mode, std::unique_ptr<EventTracer> tracer)
      : module_(file.path, file.data_path(), mode, std::move(tracer)) {}

  Error load_and_execute(Outputs& outputs) override {
    ET_CHECK_OK_OR_RETURN_ERROR(module_.load());
    ET_ASSIGN_OR_RETURN(const size_t n_methods, module_.num_methods());
    ET_CHECK_OK_OR_RETURN_ERROR(module_.method_names().error());
    for (size_t i = 0; i < n_methods; ++i) {
      ET_ASSIGN_OR_RETURN(const char* name, module_.program()->get_method_name(i));
      ET_CHECK_OK_OR_RETURN_ERROR(execute(name, outputs));
    }
    return Error::Ok;
  }

 private:
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the one way to the Method itself
  Error execute(const std::string& name, Outputs& outputs) {
    ET_CHECK_OK_OR_RETURN_ERROR(module_.load_method(name));
    ET_ASSIGN_OR_RETURN(Method* const method, module_.method(name));
    ET_ASSIGN_OR_RETURN(const BufferCleanup inputs, prepare_input_tensors(*method));
    ET_CHECK_OK_OR_RETURN_ERROR(memory_.give(*method));
    ET_ASSIGN_OR_RETURN(const auto values, module_.execute(name));
    for (const EValue& value : values) append(value, outputs);
    return Error::Ok;
  }
#pragma GCC diagnostic pop

  OutputMemory memory_;
  Module module_;
};

class MethodsRun final : public WholeRun {
 public:
  explicit MethodsRun(const ProgramFile& file) {
    const NoFailure none;
    data_path_ = file.data_path();
    std::ifstream in(file.path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    n_bytes_ = bytes.size();
    bytes_.reset(new (std::align_val_t{64}) uint8_t[n_bytes_]);
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
  }

  Error load_and_execute(Outputs& outputs) override {
    ET_CHECK_OK_OR_RETURN_ERROR(load_data());
    if (!program_.has_value()) {
      loader_.emplace(bytes_.get(), n_bytes_);
      ET_ASSIGN_OR_RETURN(Program program, Program::load(&*loader_));
      program_.emplace(std::move(program));
    }
    for (size_t i = 0; i < program_->num_methods(); ++i) {
      ET_ASSIGN_OR_RETURN(const char* name, program_->get_method_name(i));
      ET_ASSIGN_OR_RETURN(Loaded* const loaded, load(name));
      Method& method = *loaded->method;
      ET_ASSIGN_OR_RETURN(const BufferCleanup inputs, prepare_input_tensors(method));
      ET_CHECK_OK_OR_RETURN_ERROR(loaded->outputs.give(method));
      ET_CHECK_OK_OR_RETURN_ERROR(method.execute());
      for (size_t j = 0; j < method.outputs_size(); ++j) append(method.get_output(j), outputs);
    }
    return Error::Ok;
  }

 private:
  struct Loaded {
    std::vector<std::vector<uint8_t>> memory;
    std::vector<Span<uint8_t>> arenas;
    std::optional<HierarchicalAllocator> planned;
    MallocMemoryAllocator allocator;
    std::optional<MemoryManager> manager;
    OutputMemory outputs;
    std::optional<Method> method;
  };

  struct AlignedDelete {
    void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };

  Error load_data() {
    if (data_path_.empty() || data_.has_value()) return Error::Ok;
    if (!data_loader_.has_value()) {
      ET_ASSIGN_OR_RETURN(FileDataLoader loader, FileDataLoader::from(data_path_.c_str()));
      data_loader_.emplace(std::move(loader));
    }
    ET_ASSIGN_OR_RETURN(FlatTensorDataMap data, FlatTensorDataMap::load(&*data_loader_));
    data_.emplace(std::move(data));
    return Error::Ok;
  }

  Result<Loaded*> load(const char* name) {
    Loaded& loaded = prepare(name);
    if (!loaded.method.has_value()) {
      loaded.allocator.reset();
      ET_ASSIGN_OR_RETURN(Method method, program_->load_method(name, &*loaded.manager, nullptr,
                                                               data_ ? &*data_ : nullptr));
      loaded.method.emplace(std::move(method));
    }
    return &loaded;
  }

  Loaded& prepare(const char* name) {
    const NoFailure none;
    std::unique_ptr<Loaded>& loaded = methods_[name];
    if (loaded != nullptr) return *loaded;
    loaded = std::make_unique<Loaded>();
    const MethodMeta meta = *program_->method_meta(name);
    for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      loaded->memory.emplace_back(static_cast<size_t>(*meta.memory_planned_buffer_size(i)));
    }
    for (auto& arena : loaded->memory) loaded->arenas.emplace_back(arena.data(), arena.size());
    loaded->planned.emplace(Span<Span<uint8_t>>(loaded->arenas.data(), loaded->arenas.size()));
    loaded->manager.emplace(&loaded->allocator, &*loaded->planned);
    return *loaded;
  }

  std::string data_path_;
  std::unique_ptr<uint8_t[], AlignedDelete> bytes_;
  size_t n_bytes_ = 0;
  std::optional<FileDataLoader> data_loader_;
  std::optional<FlatTensorDataMap> data_;
  std::optional<BufferDataLoader> loader_;
  std::optional<Program> program_;
  std::map<std::string, std::unique_ptr<Loaded>> methods_;
};

/// Its debug buffer is its own.
class Tracer final : public executorch::etdump::ETDumpGen {
 public:
  Tracer() {
    const NoFailure none;
    values_.resize(1 << 20);
    (void)set_debug_buffer({values_.data(), values_.size()});
    set_event_tracer_debug_level(EventTracerDebugLogLevel::kIntermediateOutputs);
  }

 private:
  std::vector<uint8_t> values_;
};

}  // namespace

bool are_close(const Outputs& a, const Outputs& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    // Halves of sums of a dozen products; infinities and NaNs are equal to themselves.
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same && !(std::abs(a[i] - b[i]) <= 1e-2 * (1 + std::abs(b[i])))) return false;
  }
  return true;
}

std::string ProgramFile::name() const {
  const NoFailure none;
  return std::filesystem::path(path).stem().string();
}

std::string ProgramFile::data_path() const {
  const NoFailure none;
  const auto data = std::filesystem::path(path).replace_extension(".ptd");
  return std::filesystem::exists(data) ? data.string() : "";
}

std::unique_ptr<WholeRun> make_run(const Way& way, const ProgramFile& file) {
  switch (way.kind) {
    case Way::kMapped:
      return std::make_unique<ModuleRun>(file, Module::LoadMode::Mmap, nullptr);
    case Way::kRead:
      return std::make_unique<ModuleRun>(file, Module::LoadMode::File, nullptr);
    case Way::kTraced:
      return std::make_unique<ModuleRun>(file, Module::LoadMode::Mmap, std::make_unique<Tracer>());
    case Way::kMethods:
      break;
  }
  return std::make_unique<MethodsRun>(file);
}
