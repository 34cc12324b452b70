#pragma once

namespace executorch::runtime::etensor {

/// An element that is stored as a `T` and has no arithmetic. The types of elements derive from it,
/// so that each is a type of its own.
template <class T>
struct OpaqueNumber {
  using underlying = T;
  T val_;
  OpaqueNumber() = default;
  explicit OpaqueNumber(T val) : val_(val) {}
};

}  // namespace executorch::runtime::etensor
