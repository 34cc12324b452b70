/// Arithmetic on sizes that come from files, shapes and arguments.
///
///   const Size floats = Size(channels) * padded_height * padded_width;
///   float* const image = scratch.array<float>(floats);   // null when the product left its range
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace executorch::cpu {

/// An int64 that remembers that a sum, difference or product on its way left the range of int64:
/// whatever is computed from it is then invalid, too. It becomes a plain integer only by value(),
/// and only conditions that are false for an invalid size can be asked, so that a check that is
/// passed has always seen the true number.
class Size {
 public:
  constexpr Size() = default;
  /// Implicit from every integer; uint64 beyond int64 is invalid.
  template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  constexpr Size(T n) : value_(static_cast<int64_t>(n)), ok_((value_ < 0) == (n < T{0})) {}

  static constexpr Size invalid() { return Size(0, false); }

  constexpr bool ok() const { return ok_; }
  /// Valid, and 0 <= value() <= limit.
  constexpr bool within(int64_t limit) const { return ok_ && value_ >= 0 && value_ <= limit; }
  /// Valid, and a value of T.
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

  /// The larger and the smaller; invalid if one is.
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

/// Whether the product of some sizes >= 0, and sums and products of what divides it with small
/// numbers, are int64s: then code that loops over such sizes need not ask again. An empty size
/// counts as 1, so that the others are asked, too.
template <class... T>
constexpr bool is_countable(T... sizes) {
  constexpr int64_t kMargin = 4096;
  bool ok = true;
  Size product = kMargin;
  ((ok = ok && sizes >= 0, product *= sizes > 1 ? sizes : 1), ...);
  return ok && product.ok();
}

/// Whether a loop of `steps` simple steps (about a nanosecond each) may run for operands that hold
/// `elements` elements in all: half a second, and a thousand steps for each element. More is asked
/// only by shapes and arguments that were made to take long, such as a window of 2^30 over padding.
/// Loops of the engine's vector code are not asked: their work is bounded by what their operands
/// hold. False for invalid sizes.
constexpr bool is_affordable(Size steps, Size elements) {
  const Size limit = elements * 1024 + (int64_t{1} << 29);
  return steps.within(limit.value_or(std::numeric_limits<int64_t>::max()));
}

}  // namespace executorch::cpu
