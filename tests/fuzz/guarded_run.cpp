#include "guarded_run.h"

#include <executorch/cpu/threadpool.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "guarded_memory.h"

namespace executorch::fuzz {
namespace {

using namespace executorch::runtime;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::extension::BufferDataLoader;

constexpr uint64_t kMaxArenas = 80 << 20;
constexpr uint64_t kMaxInput = 1 << 20;
constexpr uint64_t kMaxOutput = 64 << 20;
constexpr uint64_t kMaxScratch = 256 << 20;
constexpr size_t kMethodBytes = 128 << 10;
constexpr size_t kMaxInstructions = 500;
constexpr double kSteppedSeconds = 0.5;
// Loops meet their bound soon: how long they take until then, a test of the bound says.
constexpr uint64_t kMaxWork = 20000;
constexpr size_t kSlots = 40, kSlotBytes = 128 << 10;

// What the runtime takes from the platform.
struct Platform {
  GuardedMemory memory{kSlots, kSlotBytes};
  std::mutex mutex;
  uint64_t countdown = 0;  // the allocation that fails; 0: none
};
Platform* platform = nullptr;

void* allocate(size_t bytes) {
  std::lock_guard lock(platform->mutex);
  if (bytes > kMaxScratch || (platform->countdown > 0 && --platform->countdown == 0)) {
    return nullptr;
  }
  return platform->memory.allocate(bytes, 16, GuardedMemory::Guard::After, 0xA5);
}
void release(void* block) {
  std::lock_guard lock(platform->mutex);
  platform->memory.free(block);
}

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class T>
void fill_with(uint8_t* data, size_t count, const T* values, size_t n, Random& random) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(data + i * sizeof(T), &values[random.below(n)], sizeof(T));
  }
}

template <class T>
void fill_integers(uint8_t* data, size_t count, bool extreme, Random& random) {
  using Limits = std::numeric_limits<T>;
  if (extreme) {
    const T values[] = {0, 1, 2, T(-1), T(-2), Limits::max(), Limits::min(), T(Limits::max() / 2)};
    return fill_with(data, count, values, std::size(values), random);
  }
  const T values[] = {0, 1, 0, 1, 2, 3};
  fill_with(data, count, values, std::size(values), random);
}

template <class T>
void fill_floats(uint8_t* data, size_t count, bool extreme, Random& random) {
  using Limits = std::numeric_limits<T>;
  if (extreme) {
    const T values[] = {0,
                        T(-0.0),
                        1,
                        -1,
                        Limits::quiet_NaN(),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::max(),
                        Limits::lowest(),
                        Limits::denorm_min(),
                        T(2147483648.0),
                        T(-9223372036854775808.0)};
    return fill_with(data, count, values, std::size(values), random);
  }
  const T values[] = {0, 1, T(0.5), T(-1.25), 2, 3};
  fill_with(data, count, values, std::size(values), random);
}

// Small numbers, such as indices may be, or the ends of what the type holds, or any bytes.
void fill_input(uint8_t* data, size_t bytes, ScalarType type, Random& random) {
  bytes = std::min<size_t>(bytes, 32 << 10);  // the rest stays zero
  const uint64_t choice = random.below(10);
  if (choice == 0 || (type == ScalarType::Bool && choice < 3)) {
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(random.next());
    return;
  }
  const bool extreme = choice < 4;
  switch (type) {
    case ScalarType::Bool:
      return fill_integers<uint8_t>(data, bytes, false, random);
    case ScalarType::Byte:
      return fill_integers<uint8_t>(data, bytes, extreme, random);
    case ScalarType::Char:
      return fill_integers<int8_t>(data, bytes, extreme, random);
    case ScalarType::Short:
      return fill_integers<int16_t>(data, bytes / 2, extreme, random);
    case ScalarType::Int:
      return fill_integers<int32_t>(data, bytes / 4, extreme, random);
    case ScalarType::Long:
      return fill_integers<int64_t>(data, bytes / 8, extreme, random);
    case ScalarType::Float:
      return fill_floats<float>(data, bytes / 4, extreme, random);
    case ScalarType::Double:
      return fill_floats<double>(data, bytes / 8, extreme, random);
    case ScalarType::Half: {
      const uint16_t values[] = {0, 0x3C00, 0xB800, 0x7C00, 0xFC00, 0x7E00, 1, 0x7BFF};
      return fill_with(data, bytes / 2, values, extreme ? 8 : 3, random);
    }
    case ScalarType::BFloat16: {
      const uint16_t values[] = {0, 0x3F80, 0xBF00, 0x7F80, 0xFF80, 0x7FC0, 1, 0x7F7F};
      return fill_with(data, bytes / 2, values, extreme ? 8 : 3, random);
    }
    default:
      return fill_integers<uint8_t>(data, bytes, extreme, random);
  }
}

uint64_t bytes_of_shape(const std::vector<int32_t>& sizes, uint64_t element) {
  uint64_t all = element;
  for (const int32_t size : sizes) {
    all = std::min<uint64_t>(all * static_cast<uint64_t>(size), uint64_t{1} << 31);
  }
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end() ? 0 : all;
}

// One method of a program in guarded memory.
class Run {
 public:
  Run(const Program& program, const char* name, GuardedMemory& memory, Random& random,
      Progress& progress)
      : program_(program), name_(name), memory_(memory), random_(random), progress_(progress) {}

  Outcome all() {
    auto meta = program_.method_meta(name_);
    if (!meta.ok() || !make_arenas(*meta)) return Outcome::NotLoaded;
    read_meta(*meta);
    if (random_.chance(10)) {
      std::lock_guard lock(platform->mutex);
      platform->countdown = 1 + random_.below(8);
    }
    uint8_t* method_room = allocate_bytes(kMethodBytes, 16);
    MemoryAllocator methods(kMethodBytes, method_room);
    std::optional<MemoryAllocator> temporary;
    if (const uint64_t choice = random_.below(4); choice > 0) {
      const size_t bytes = choice == 1 ? random_.below(600) : choice == 2 ? 16 << 10 : 120 << 10;
      temporary.emplace(static_cast<uint32_t>(bytes), allocate_bytes(bytes, 16));
    }
    HierarchicalAllocator planned({arenas_.data(), arenas_.size()});
    MemoryManager manager(&methods, &planned, temporary ? &*temporary : nullptr);
    auto method = program_.load_method(name_, &manager);
    if (!method.ok()) return Outcome::NotLoaded;
    method->set_max_work(kMaxWork);
    Outcome outcome = once(*method, *meta);
    if (random_.chance(25)) {
      if (method->in_progress()) (void)method->reset_execution();
      outcome = std::min(outcome, once(*method, *meta));
    }
    return outcome;
  }

 private:
  uint8_t* allocate_bytes(size_t bytes, size_t alignment) {
    const bool after = random_.chance(85);
    uint8_t* block = memory_.allocate(
        bytes, alignment, after ? GuardedMemory::Guard::After : GuardedMemory::Guard::Before,
        static_cast<uint8_t>(random_.chance(50) ? 0 : 0x7F));
    if (block == nullptr) {
      std::abort();  // what is asked for is bounded
    }
    return block;
  }

  bool make_arenas(const MethodMeta& meta) {
    uint64_t total = 0;
    for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      const auto bytes = static_cast<uint64_t>(*meta.memory_planned_buffer_size(i));
      if (bytes > kMaxArenas - total) return false;
      total += bytes;
      arenas_.emplace_back(allocate_bytes(bytes, 16), bytes);
    }
    return true;
  }

  static void read_meta(const MethodMeta& meta) {
    for (size_t i = 0; i < meta.num_outputs(); ++i) {
      (void)meta.output_tag(i);
      (void)meta.output_tensor_meta(i);
    }
    for (size_t i = 0; i < meta.num_attributes(); ++i) (void)meta.attribute_tensor_meta(i);
    (void)meta.num_instructions();
  }

  // A shape within the bound, which may be anything.
  void choose_shape(std::vector<int32_t>& sizes, uint64_t element) {
    const uint64_t choice = random_.below(4);
    for (int32_t& size : sizes) {
      if (choice == 1 && size > 0 && random_.chance(40)) {
        size = static_cast<int32_t>(random_.below(static_cast<uint64_t>(size) + 1));
      } else if (choice == 2 && random_.chance(30)) {
        size = std::min(size, static_cast<int32_t>(random_.below(2)));
      }
    }
    while (bytes_of_shape(sizes, element) > kMaxInput) {
      *std::max_element(sizes.begin(), sizes.end()) /= 2;
    }
  }

  Error set_input(Method& method, const MethodMeta& meta, size_t index) {
    auto tag = meta.input_tag(index);
    auto info = meta.input_tensor_meta(index);
    if (!tag.ok() || *tag != Tag::Tensor || !info.ok()) return Error::Ok;
    std::vector<int32_t> sizes(info->sizes().begin(), info->sizes().end());
    std::vector<uint8_t> order(info->dim_order().begin(), info->dim_order().end());
    const uint64_t element = elementSize(info->scalar_type());
    choose_shape(sizes, element);
    ScalarType type = info->scalar_type();
    if (random_.chance(2)) {
      sizes.resize(random_.below(18), 1);
      order.resize(sizes.size());
      std::iota(order.begin(), order.end(), uint8_t{0});
    } else if (random_.chance(1)) {
      type = ScalarType::Byte;
    }
    const uint64_t bytes = bytes_of_shape(sizes, element);
    uint8_t* data = random_.chance(1) ? nullptr : allocate_bytes(bytes, element);
    if (data != nullptr) fill_input(data, bytes, type, random_);
    std::vector<int32_t> strides(sizes.size() + 1);
    TensorImpl impl(type, static_cast<ssize_t>(sizes.size()), sizes.data(), data, order.data(),
                    strides.data());
    return method.set_input(EValue(Tensor(&impl)), index);
  }

  void set_output(Method& method, const MethodMeta& meta, size_t index) {
    auto info = meta.output_tensor_meta(index);
    if (!info.ok() || info->is_memory_planned() || random_.chance(5)) return;
    const std::vector<int32_t> sizes(info->sizes().begin(), info->sizes().end());
    const uint64_t bytes = bytes_of_shape(sizes, elementSize(info->scalar_type()));
    if (bytes <= kMaxOutput) {
      (void)method.set_output_data_ptr(allocate_bytes(bytes, 16), bytes, index);
    }
  }

  Outcome once(Method& method, const MethodMeta& meta) {
    for (const Span<uint8_t>& arena : arenas_) progress_.planned_bytes += arena.size();
    progress_.at.chain = Place::kUnknown;
    for (size_t i = 0; i < meta.num_inputs(); ++i) {
      if (set_input(method, meta, i) != Error::Ok) return Outcome::Failed;
    }
    for (size_t i = 0; i < meta.num_outputs(); ++i) set_output(method, meta, i);
    const uint64_t steps = method.steps();
    const Error error = random_.chance(10) ? method.execute() : step(method);
    progress_.steps += method.steps() - steps;
    read_outputs(method);
    return error == Error::EndOfMethod || error == Error::Ok ? Outcome::Ran : Outcome::Failed;
  }

  Error step(Method& method) {
    Error error = Error::Ok;
    // Who steps decides when to stop; the work of loops is bounded in execute().
    double left = kSteppedSeconds;
    for (size_t i = 0; error == Error::Ok && i < kMaxInstructions && left > 0; ++i) {
      const auto place = method.next_place();
      progress_.at.chain = static_cast<uint32_t>(place.chain);
      progress_.at.instruction = static_cast<uint32_t>(place.instruction);
      const double start = cpu_seconds();
      error = method.step();
      const double seconds = cpu_seconds() - start;
      left -= seconds;
      if (seconds > progress_.slowest_seconds) {
        progress_.slowest_seconds = seconds;
        progress_.slowest = progress_.at;
      }
    }
    return error;
  }

  static void read_outputs(Method& method) {
    std::vector<EValue> outputs(method.outputs_size() + 1);
    if (method.get_outputs(outputs.data(), outputs.size()) != Error::Ok) return;
    volatile uint8_t sum = 0;
    for (const EValue& output : outputs) {
      if (!output.isTensor() || output.toTensor().const_data_ptr() == nullptr) continue;
      const auto* bytes = static_cast<const uint8_t*>(output.toTensor().const_data_ptr());
      const size_t size = output.toTensor().nbytes();
      for (size_t i = 0; i < std::min<size_t>(size, 256); ++i) {
        sum = static_cast<uint8_t>(sum + bytes[i]);
      }
      for (size_t i = size - std::min<size_t>(size, 256); i < size; ++i) {
        sum = static_cast<uint8_t>(sum + bytes[i]);
      }
    }
  }

  const Program& program_;
  const char* name_;
  GuardedMemory& memory_;
  Random& random_;
  Progress& progress_;
  std::vector<Span<uint8_t>> arenas_;
};

Outcome run_methods(const uint8_t* data, size_t size, GuardedMemory& memory, Random& random,
                    Progress& progress) {
  BufferDataLoader loader(data, size);
  auto program = Program::load(&loader, Program::Verification::InternalConsistency);
  if (!program.ok()) return Outcome::Refused;
  Outcome outcome = Outcome::Ran;
  for (size_t i = 0; i < program->num_methods(); ++i) {
    progress.at = {static_cast<uint32_t>(i), Place::kUnknown, 0};
    progress.slowest = progress.at;
    const Outcome one = Run(*program, *program->get_method_name(i), memory, random, progress).all();
    outcome = std::min(outcome, one);
  }
  if (auto data_map = program->get_named_data_map(); data_map.ok()) {
    for (uint32_t i = 0; i < *(*data_map)->get_num_keys(); ++i) {
      (void)(*data_map)->get_data(*(*data_map)->get_key(i));
    }
  }
  return outcome;
}

}  // namespace

void prepare_runs(size_t threads, bool logs) {
  platform = new Platform;
  PalImpl impl = PalImpl::create(logs ? nullptr : ignore_log, "guarded_run.cpp");
  impl.allocate = allocate;
  impl.free = release;
  register_pal(impl);
  runtime_init();
  cpu::default_pool().resize(threads);
}

Verdict run_guarded(const Bytes& program, uint64_t seed, Progress& progress) {
  static GuardedMemory& memory = *new GuardedMemory(kSlots, kSlotBytes);
  Random random(seed);
  const double start = cpu_seconds();
  optimized::set_fusion_enabled(random.chance(60));
  const bool is_mapped = random.chance(50);
  // Larger than a slot: a mapping of its own, that can be made read-only.
  GuardedMemory file(0, 0);
  uint8_t* data = file.allocate(program.size(), 64, GuardedMemory::Guard::After);
  std::memcpy(data, program.data(), program.size());
  if (is_mapped) file.protect(data);
  Verdict verdict;
  verdict.outcome = run_methods(data, program.size(), memory, random, progress);
  progress.cpu_seconds = cpu_seconds() - start;
  const bool is_intact = memory.clear();
  const bool has_leak = platform->memory.live() > 0;
  platform->countdown = 0;
  if (!is_mapped && std::memcmp(data, program.data(), program.size()) != 0) {
    verdict.misdeed = Misdeed::ProgramWritten;
  } else if (!is_intact || !platform->memory.clear() || !file.clear()) {
    verdict.misdeed = Misdeed::MemoryWritten;
  } else if (has_leak) {
    verdict.misdeed = Misdeed::Leak;
  }
  return verdict;
}

}  // namespace executorch::fuzz
