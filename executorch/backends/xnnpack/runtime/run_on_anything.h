/// Runs graphs whose payload nobody vouches for: for tests and fuzzing.
#pragma once

#include <executorch/backends/xnnpack/runtime/executor.h>
#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/platform/assert.h>

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

namespace executorch::backends::xnnpack::testing {

/// Memory whose end is that of a page, before one that cannot be touched: a read or write beyond it
/// ends the process, in any build.
class GuardedBytes {
 public:
  GuardedBytes() = default;
  explicit GuardedBytes(size_t n) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t used = (n + page - 1) / page * page;
    mapped_ = used + page;
    void* const all =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ET_CHECK(all != MAP_FAILED);
    first_ = static_cast<uint8_t*>(all);
    ET_CHECK(mprotect(first_ + used, page, PROT_NONE) == 0);
    data_ = first_ + used - n;
  }
  GuardedBytes(GuardedBytes&& other) noexcept { *this = std::move(other); }
  GuardedBytes& operator=(GuardedBytes&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(data_, other.data_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~GuardedBytes() {
    if (first_ != nullptr) munmap(first_, mapped_);
  }
  uint8_t* get() const { return data_; }

 private:
  uint8_t *first_ = nullptr, *data_ = nullptr;
  size_t mapped_ = 0;
};

/// Arguments of a call, in memory of exactly each tensor's size.
class AnyArguments {
 public:
  /// With the present shapes of `graph`.
  explicit AnyArguments(const Graph& graph) : slots_(graph.n_externals) {
    for (uint32_t slot = 0; slot < graph.n_externals; ++slot) {
      if (graph.externals[slot] == kNoId) continue;
      const Value& value = graph.values[graph.externals[slot]];
      Slot& made = slots_[slot];
      for (size_t d = 0; d < value.shape.rank; ++d) {
        made.sizes.push_back(static_cast<int32_t>(value.shape[d]));
        made.order.push_back(static_cast<uint8_t>(d));
      }
      made.strides.resize(made.sizes.size());
      for (size_t d = made.sizes.size(), step = 1; d-- > 0; step *= made.sizes[d]) {
        made.strides[d] = static_cast<int32_t>(step);
      }
      const auto bytes = static_cast<size_t>(nbytes(value));
      made.memory = GuardedBytes(bytes);
      for (size_t i = 0; i < bytes; ++i) {
        made.memory.get()[i] = static_cast<uint8_t>(i * 37 + slot);
      }
      made.impl = std::make_unique<aten::TensorImpl>(
          type_of(value.type), static_cast<ssize_t>(made.sizes.size()), made.sizes.data(),
          made.memory.get(), made.order.data(), made.strides.data(),
          aten::TensorShapeDynamism::DYNAMIC_BOUND);
      made.value = runtime::EValue(aten::Tensor(made.impl.get()));
    }
    for (Slot& slot : slots_) pointers_.push_back(&slot.value);
  }

  runtime::Span<runtime::EValue*> span() { return {pointers_.data(), pointers_.size()}; }

  /// The inputs become one shorter along their first dim.
  void shorten(const Graph& graph) {
    for (uint32_t slot = 0; slot < graph.n_externals; ++slot) {
      const uint32_t id = graph.externals[slot];
      if (id == kNoId || graph.values[id].place != Value::Place::Input) continue;
      if (!slots_[slot].sizes.empty() && slots_[slot].sizes[0] > 0) --slots_[slot].sizes[0];
    }
  }

 private:
  static aten::ScalarType type_of(Type type) {
    switch (type) {
      case Type::fp16:
        return aten::ScalarType::Half;
      case Type::bf16:
        return aten::ScalarType::BFloat16;
      case Type::qint8:
        return aten::ScalarType::Char;
      case Type::quint8:
        return aten::ScalarType::Byte;
      case Type::int32:
        return aten::ScalarType::Int;
      default:
        return aten::ScalarType::Float;
    }
  }

  struct Slot {
    std::vector<int32_t> sizes, strides;
    std::vector<uint8_t> order;
    GuardedBytes memory;
    std::unique_ptr<aten::TensorImpl> impl;
    runtime::EValue value;
  };
  std::vector<Slot> slots_;
  std::vector<runtime::EValue*> pointers_;
};

/// Reads a payload and runs it, with the shapes that it says and with shorter ones; what needs more
/// than `max_bytes` is read only. The result of reading.
inline Error use_payload(const void* payload, size_t size, const runtime::NamedDataMap* data,
                         int64_t max_bytes) {
  auto read = read_graph(payload, size, data);
  if (!read.ok()) return read.error();
  int64_t total = 0;
  for (const Value& value : (*read)->values) {
    // Constants are there already.
    if (value.place != Value::Place::Constant) total += nbytes(value);
    if (total > max_bytes) return Error::Ok;
  }
  const Graph& graph = **read;
  AnyArguments arguments(graph);
  Executor executor(std::move(*read));
  for (int i = 0; i < 2; ++i) {
    cpu::HeapScratch scratch(size_t{1} << 30);
    (void)executor.execute(arguments.span(), nullptr, scratch);
    arguments.shorten(graph);
  }
  return Error::Ok;
}

}  // namespace executorch::backends::xnnpack::testing
