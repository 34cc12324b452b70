#pragma once

#include <cstddef>

#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime {

/// A borrowed, mutable view of `size()` elements that lie side by side. `Span<const T>` only
/// reads. Indexing is unchecked in release builds.
template <typename T>
class Span final {
 public:
  using value_type = T;
  using iterator = T*;
  using size_type = size_t;

  constexpr Span() noexcept : data_(nullptr), length_(0) {}
  constexpr Span(T* data, size_t length) : data_(data), length_(length) {}
  constexpr Span(T* begin, T* end) : data_(begin), length_(static_cast<size_t>(end - begin)) {}
  template <size_t N>
  constexpr Span(T (&Arr)[N]) : data_(Arr), length_(N) {}
  constexpr Span(T& single_element) : data_(&single_element), length_(1) {}

  iterator begin() const noexcept { return data_; }
  iterator end() const noexcept { return data_ + length_; }
  constexpr bool empty() const noexcept { return length_ == 0; }
  constexpr T* data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return length_; }

  T& operator[](size_t index) const {
    ET_DCHECK(index < length_);
    return data_[index];
  }

 private:
  T* data_;
  size_t length_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Span;
}  // namespace torch::executor
