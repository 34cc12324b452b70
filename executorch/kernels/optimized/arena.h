/// Allocation from the memory of the method that is being loaded.
#pragma once

#include <executorch/kernels/optimized/graph.h>
#include <executorch/runtime/core/memory_allocator.h>

#include <cstring>
#include <memory>
#include <string>

namespace executorch::optimized {

/// Allocated objects live as long as the method's memory; no destructor is called. Once the memory
/// is used up, functions return null pointers, empty spans and empty texts, and ok() is false.
class Arena {
 public:
  explicit Arena(runtime::MemoryAllocator& allocator) : allocator_(allocator) {}

  bool ok() const { return ok_; }
  template <class T>
  T* make() {
    T* const made = allocate<T>(1);
    return made == nullptr ? nullptr : new (made) T{};
  }
  template <class T>
  Span<T> copy(const std::vector<T>& items) {
    T* const made = items.empty() ? nullptr : allocate<T>(items.size());
    if (made == nullptr) return {};
    std::uninitialized_copy(items.begin(), items.end(), made);
    return {made, items.size()};
  }
  const char* copy(const std::string& text) {
    char* const made = allocate<char>(text.size() + 1);
    return made == nullptr ? "" : std::strcpy(made, text.c_str());
  }
  Span<const Step> steps(const std::vector<Step>& steps) {
    const Span<Step> made = copy(steps);
    return {made.data(), made.size()};
  }
  Operand operand(const Graph& graph, const Graph::Chain& chain) {
    return {graph.values()[chain.base].value, steps(chain.steps)};
  }

 private:
  template <class T>
  T* allocate(size_t n) {
    T* const made = ok_ ? allocator_.allocateList<T>(n) : nullptr;
    ok_ = made != nullptr;
    return made;
  }

  runtime::MemoryAllocator& allocator_;
  bool ok_ = true;
};

}  // namespace executorch::optimized
