#pragma once

#include <executorch/extension/module/planned_memory.h>
#include <executorch/runtime/executor/method.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace executorch::extension::pybindings {

/// Which arena holds the mutable buffers that methods share: memory id 2 in the program.
constexpr size_t kStateArena = 1;

/// The memory of the mutable buffers that methods loaded one by one share.
class SharedState {
 public:
  explicit SharedState(size_t size);
  runtime::Span<uint8_t> span() const { return memory_.span(); }
  /// Methods that share state run one after the other.
  std::mutex& turns() { return turns_; }

  /// Loading a method writes the values that its buffers begin with. What is in use by then is put
  /// back, and the method's own buffers are in use from then on. Call with `turns` held: copy(),
  /// then load, then put_back(), and if the method was loaded use().
  std::vector<uint8_t> copy() const;
  void put_back(const std::vector<uint8_t>& copied);
  void use(const runtime::Method& method);

 private:
  struct Range {
    size_t begin, n_bytes;
  };
  internal::ArenaBuffer memory_;
  std::mutex turns_;
  std::vector<Range> used_;
};

/// The planned memory of a method whose second arena is the program's state; the others are its
/// own.
class ArenasWithState {
 public:
  ArenasWithState(SharedState& state, const runtime::MethodMeta& meta);
  runtime::HierarchicalAllocator* allocator() { return &*allocator_; }
  SharedState& state() { return state_; }

 private:
  SharedState& state_;
  std::vector<internal::ArenaBuffer> own_;
  std::vector<runtime::Span<uint8_t>> spans_;
  std::optional<runtime::HierarchicalAllocator> allocator_;
};

}  // namespace executorch::extension::pybindings
