/// for (const auto i : c10::irange(n)) and irange(begin, end): loops over integers, end excluded.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/irange.h>)
#include_next <c10/util/irange.h>
#else

#include <cstddef>
#include <iterator>
#include <type_traits>

namespace c10 {

template <typename I>
class integer_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using pointer = const I*;
    using reference = I;

    constexpr explicit iterator(I value) : value_(value) {}
    constexpr I operator*() const { return value_; }
    constexpr iterator& operator++() {
      ++value_;
      return *this;
    }
    constexpr iterator operator++(int) {
      iterator before = *this;
      ++value_;
      return before;
    }
    constexpr bool operator==(const iterator& other) const { return value_ == other.value_; }
    constexpr bool operator!=(const iterator& other) const { return value_ != other.value_; }

   private:
    I value_;
  };

  /// Empty when `end` is below `begin`.
  constexpr integer_range(I begin, I end) : begin_(begin), end_(end < begin ? begin : end) {}
  constexpr iterator begin() const { return begin_; }
  constexpr iterator end() const { return end_; }

 private:
  iterator begin_;
  iterator end_;
};

template <typename B, typename E,
          std::enable_if_t<std::is_integral_v<B> && std::is_integral_v<E>, bool> = true>
constexpr integer_range<E> irange(B begin, E end) {
  return {static_cast<E>(begin), end};
}

template <typename E, std::enable_if_t<std::is_integral_v<E>, bool> = true>
constexpr integer_range<E> irange(E end) {
  return {E(0), end};
}

}  // namespace c10

#endif
