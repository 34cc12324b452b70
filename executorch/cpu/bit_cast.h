/// std::bit_cast, which the C++ library of Emscripten 3.1 lacks.
#pragma once

#include <type_traits>

namespace executorch::cpu {

template <class To, class From>
constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

}  // namespace executorch::cpu
