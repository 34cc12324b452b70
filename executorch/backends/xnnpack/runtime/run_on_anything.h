/// Runs graphs whose payload nobody vouches for: for tests and fuzzing.
#pragma once

#include <executorch/backends/xnnpack/runtime/executor.h>
#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/backends/xnnpack/runtime/guarded_memory.h>
#include <executorch/backends/xnnpack/runtime/payload_mutation.h>
#include <executorch/backends/xnnpack/runtime/work.h>
#include <executorch/runtime/core/evalue.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace executorch::backends::xnnpack::testing {

/// What a graph says about its arguments, by slot: types, and the largest shapes.
struct Externals {
  struct Slot {
    Type type = Type::invalid;
    Value::Place place = Value::Place::Internal;
    Shape shape;
  };
  std::vector<Slot> slots;

  explicit Externals(const Graph& graph) : slots(graph.n_externals) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (graph.externals[i] == kNoId) continue;
      const Value& value = graph.values[graph.externals[i]];
      slots[i] = {value.type, value.place, value.shape};
    }
  }
};

/// Arguments of a call, in memory of exactly each tensor's size.
class AnyArguments {
 public:
  explicit AnyArguments(const Externals& externals) {
    for (const auto& slot : externals.slots) add(slot.type, slot.shape);
  }
  /// Inputs of smaller or slightly larger shapes; now and then an argument that is wrong: of
  /// another type or rank, twice there, missing, without memory, a constant.
  AnyArguments(const Externals& externals, Random& random) {
    for (const auto& slot : externals.slots) {
      Shape shape = slot.shape;
      for (size_t d = 0; d < shape.rank && slot.place == Value::Place::Input; ++d) {
        if (random() % 2 == 0) continue;
        const bool beyond = random() % 16 == 0 && shape[d] < INT32_MAX;
        shape[d] = beyond ? shape[d] + 1
                          : static_cast<int64_t>(random() % static_cast<uint64_t>(shape[d] + 1));
      }
      // One more may be gigabytes more, where another extent is none.
      constexpr int64_t kMostElements = 1 << 24;
      add(slot.type, shape.numel() <= kMostElements ? shape : slot.shape);
    }
    if (random() % 16 == 0 && !slots_.empty()) spoil(random);
  }

  runtime::Span<runtime::EValue*> span() {
    pointers_.clear();
    for (auto& slot : slots_) pointers_.push_back(&slot->value);
    return {pointers_.data(), pointers_.size()};
  }

 private:
  struct Slot {
    std::vector<int32_t> sizes, strides;
    std::vector<uint8_t> order;
    GuardedBytes memory;
    std::unique_ptr<aten::TensorImpl> impl;
    runtime::EValue value;
  };

  void add(Type type, const Shape& shape) {
    slots_.push_back(std::make_unique<Slot>());
    Slot& made = *slots_.back();
    if (type == Type::invalid) return;
    for (size_t d = 0; d < shape.rank; ++d) {
      made.sizes.push_back(static_cast<int32_t>(shape[d]));
      made.order.push_back(static_cast<uint8_t>(d));
    }
    made.strides.resize(made.sizes.size());
    for (size_t d = made.sizes.size(), step = 1; d-- > 0; step *= made.sizes[d]) {
      made.strides[d] = static_cast<int32_t>(step);
    }
    const size_t bytes = static_cast<size_t>(shape.numel()) * element_size(type);
    made.memory = GuardedBytes(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      made.memory.get()[i] = static_cast<uint8_t>(i * 37 + slots_.size());
    }
    make_tensor(made, type_of(type));
  }

  void make_tensor(Slot& slot, aten::ScalarType type) {
    slot.impl = std::make_unique<aten::TensorImpl>(
        type, static_cast<ssize_t>(slot.sizes.size()), slot.sizes.data(), slot.memory.get(),
        slot.order.data(), slot.strides.data(), aten::TensorShapeDynamism::DYNAMIC_BOUND);
    slot.value = runtime::EValue(aten::Tensor(slot.impl.get()));
  }

  void spoil(Random& random) {
    auto& slot = *slots_[random() % slots_.size()];
    const auto& other = *slots_[random() % slots_.size()];
    switch (random() % 8) {
      case 0:
        slot.value = runtime::EValue(int64_t{1});
        break;
      case 1:
        slot.value = runtime::EValue();
        break;
      case 2:
        if (slot.impl != nullptr) slot.impl->set_data(nullptr);
        break;
      case 3:
        slots_.pop_back();
        break;
      case 4:
        if (slot.impl != nullptr && slot.impl->numel() == 0) {
          make_tensor(slot, aten::ScalarType::Double);
        }
        break;
      case 5:
        if (slot.impl != nullptr) {
          slot.impl->borrow_data(slot.memory.get(), SIZE_MAX, true);
          slot.memory.forbid_writing();
        }
        break;
      case 6:
        // What is left has no elements either: there is no memory for any.
        if (slot.sizes.size() > 1 &&
            std::find(slot.sizes.begin(), slot.sizes.end() - 1, 0) != slot.sizes.end() - 1) {
          slot.sizes.pop_back();
          make_tensor(slot, slot.impl->scalar_type());
        }
        break;
      default:
        slot.value = other.value;
    }
  }

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

  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<runtime::EValue*> pointers_;
};

/// Whether running it is worth the time: values and work are small.
inline bool is_small(const Graph& graph, int64_t max_bytes) {
  cpu::Size bytes = 0;
  for (const Value& value : graph.values) {
    // Constants are there already.
    if (value.place != Value::Place::Constant) bytes += nbytes(value);
  }
  return bytes.within(max_bytes) && steps_of(graph).within(8 * max_bytes);
}

/// Reads a payload and runs it: with the shapes that it says, then with others; what `is_small`
/// refuses is read only. The result of reading.
inline Error use_payload(const void* payload, size_t size, const runtime::NamedDataMap* data,
                         int64_t max_bytes, Random& random) {
  ET_ASSIGN_OR_RETURN(auto read, read_graph(payload, size, data));
  if (!is_small(*read, max_bytes)) return Error::Ok;
  const Externals externals(*read);
  Executor executor(std::move(read));
  for (int call = 0; call < 3; ++call) {
    AnyArguments arguments = call == 0 ? AnyArguments(externals) : AnyArguments(externals, random);
    GuardedScratch scratch(size_t{1} << 30);
    (void)executor.execute(arguments.span(), nullptr, scratch);
  }
  return Error::Ok;
}

}  // namespace executorch::backends::xnnpack::testing
