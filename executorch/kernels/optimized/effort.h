/// A limit on the work that is done to fuse one method.
#pragma once

#include <cstddef>

namespace executorch::optimized {

/// Thrown where looking for what could be fused takes too long.
struct TooMuchEffort {};

/// Counts steps of about a nanosecond. Passes over a graph whose cost is not linear in its size
/// spend from it, so that a method that was made to be hard is soon left as it is.
class Effort {
 public:
  /// For a method of `size` instructions, arguments, values and constant elements.
  explicit Effort(size_t size) : left_(kLeast + kForEach * size) {}

  void spend(size_t steps) {
    if (steps > left_) throw TooMuchEffort();
    left_ -= steps;
  }

 private:
  // A tenth of a second for any method, and about what loading it takes besides.
  static constexpr size_t kLeast = size_t{1} << 26;
  static constexpr size_t kForEach = 64;

  size_t left_;
};

}  // namespace executorch::optimized
