/// A limit on the work that is done to fuse one method.
#pragma once

#include <cstddef>

namespace executorch::optimized {

/// Thrown when the search for fusable patterns takes too long.
struct TooMuchEffort {};

/// A budget of steps of about a nanosecond. Passes whose cost is not linear in the size of the
/// graph spend steps from it, so that fusion of a method that was made to take long is given up
/// soon; the method then runs unfused.
class Effort {
 public:
  /// For a method of `size` instructions, arguments, values and constant elements.
  explicit Effort(size_t size) : left_(kLeast + kForEach * size) {}

  void spend(size_t steps) {
    if (steps > left_) throw TooMuchEffort();
    left_ -= steps;
  }

 private:
  // About a tenth of a second for any method, plus about the time that loading the method takes.
  static constexpr size_t kLeast = size_t{1} << 26;
  static constexpr size_t kForEach = 64;

  size_t left_;
};

}  // namespace executorch::optimized
