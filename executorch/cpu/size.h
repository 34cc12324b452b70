/// Arithmetic on sizes that come from files, shapes and arguments.
///
///   const Size floats = Size(channels) * padded_height * padded_width;
///   float* const image = scratch.array<float>(floats);   // null when the product left its range
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace executorch::cpu {

/// An int64 that becomes invalid when a sum, difference or product leaves the range of int64.
/// Whatever is computed from an invalid Size is invalid as well. A Size becomes a plain integer
/// only by value(), and all its conditions are false for an invalid Size, so a check that passes
/// has always seen the true number.
class Size {
 public:
  constexpr Size() = default;
  /// Implicit from every integer; uint64 beyond int64 is invalid.
  template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  constexpr Size(T n) : value_(static_cast<int64_t>(n)), ok_((value_ < 0) == (n < T{0})) {}

  static constexpr Size invalid() { return Size(0, false); }

  constexpr bool ok() const { return ok_; }
  /// Whether the size is valid and 0 <= value() <= limit.
  constexpr bool within(int64_t limit) const { return ok_ && value_ >= 0 && value_ <= limit; }
  /// Whether the size is valid and T can represent it.
  template <class T>
  constexpr bool fits() const {
    return ok_ && (std::is_signed_v<T> || value_ >= 0) &&
           (sizeof(T) >= sizeof(int64_t) ||
            (value_ >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
             value_ <= static_cast<int64_t>(std::numeric_limits<T>::max())));
  }
  /// The number, if ok().
  constexpr int64_t value() const { return value_; }
  constexpr int64_t value_or(int64_t other) const { return ok_ ? value_ : other; }

  friend constexpr Size operator+(Size a, Size b) {
    int64_t sum = 0;
    const bool wraps = __builtin_add_overflow(a.value_, b.value_, &sum);
    return Size(sum, a.ok_ && b.ok_ && !wraps);
  }
  friend constexpr Size operator-(Size a, Size b) {
    int64_t difference = 0;
    const bool wraps = __builtin_sub_overflow(a.value_, b.value_, &difference);
    return Size(difference, a.ok_ && b.ok_ && !wraps);
  }
  friend constexpr Size operator*(Size a, Size b) {
    int64_t product = 0;
    const bool wraps = __builtin_mul_overflow(a.value_, b.value_, &product);
    return Size(product, a.ok_ && b.ok_ && !wraps);
  }
  /// Rounded towards zero; invalid for b = 0 and for the lowest number by -1.
  friend constexpr Size operator/(Size a, Size b) {
    if (!a.ok_ || !b.ok_ || b.value_ == 0 ||
        (b.value_ == -1 && a.value_ == std::numeric_limits<int64_t>::min())) {
      return invalid();
    }
    return Size(a.value_ / b.value_);
  }
  constexpr Size& operator+=(Size b) { return *this = *this + b; }
  constexpr Size& operator-=(Size b) { return *this = *this - b; }
  constexpr Size& operator*=(Size b) { return *this = *this * b; }

  /// The larger and the smaller of two sizes; invalid if one of them is invalid.
  friend constexpr Size max(Size a, Size b) {
    return Size(a.value_ > b.value_ ? a.value_ : b.value_, a.ok_ && b.ok_);
  }
  friend constexpr Size min(Size a, Size b) {
    return Size(a.value_ < b.value_ ? a.value_ : b.value_, a.ok_ && b.ok_);
  }
  /// a / b and a rounded up to a multiple of b, for b > 0.
  friend constexpr Size ceil_div(Size a, Size b) { return (a + b - 1) / b; }
  friend constexpr Size round_up(Size a, Size b) { return ceil_div(a, b) * b; }

 private:
  constexpr Size(int64_t value, bool ok) : value_(value), ok_(ok) {}

  int64_t value_ = 0;
  bool ok_ = true;
};

/// Whether all sizes are >= 0 and their product fits an int64 with a factor of 4096 to spare. Code
/// that loops over these sizes then needs no further checks: products of some of them, and such
/// products times or plus small numbers, fit an int64 as well. A size of 0 counts as 1, so that it
/// does not hide that the others are too large.
template <class... T>
constexpr bool is_countable(T... sizes) {
  constexpr int64_t kMargin = 4096;
  bool ok = true;
  Size product = kMargin;
  ((ok = ok && sizes >= 0, product *= sizes > 1 ? sizes : 1), ...);
  return ok && product.ok();
}

/// Whether a loop of `steps` simple steps (about a nanosecond each) may run for operands that hold
/// `elements` elements in all. Allowed are half a second plus a thousand steps for each element.
/// Only shapes and arguments made to take long, such as a window of 2^30 over padding, need more.
/// The loops of the engine's vector code need no such check, because the sizes of their operands
/// bound their work. Returns false for invalid `steps`.
constexpr bool is_affordable(Size steps, Size elements) {
  const Size limit = elements * 1024 + (int64_t{1} << 29);
  return steps.within(limit.value_or(std::numeric_limits<int64_t>::max()));
}

}  // namespace executorch::cpu
