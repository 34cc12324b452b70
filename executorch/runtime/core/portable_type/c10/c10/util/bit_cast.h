#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/bit_cast.h>)
#include_next <c10/util/bit_cast.h>
#else

#include <cstring>
#include <type_traits>

namespace c10 {

/// The bytes of `source` as a value of another type of the same size.
template <class To, class From>
std::enable_if_t<sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From> &&
                     std::is_trivially_copyable_v<To>,
                 To>
bit_cast(const From& source) noexcept {
  To result;
  std::memcpy(&result, &source, sizeof(To));
  return result;
}

}  // namespace c10

#endif
