#pragma once

#include <array>
#include <cstddef>
#include <variant>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

/// Bytes, the zero byte included.
static constexpr size_t kMaxOptionKeyLength = 64;
static constexpr size_t kMaxOptionValueLength = 256;

using OptionValue = std::variant<bool, int, std::array<char, kMaxOptionValueLength>>;

/// A named setting of a backend.
struct BackendOption {
  char key[kMaxOptionKeyLength]{};
  OptionValue value;
};

namespace internal {

/// The first option of that key, or null.
const BackendOption* find_option(Span<const BackendOption> options, const char* key);

/// Stores the value in `out`: NotFound for a null option, InvalidArgument for another type.
Error read_option(const BackendOption* option, bool& out);
Error read_option(const BackendOption* option, int& out);
/// Borrowed from the option.
Error read_option(const BackendOption* option, const char*& out);

/// Replaces the value of the option of that key among the first `size`, or appends it and counts
/// `size` up. InvalidArgument when there is no room or the key is too long.
Error store_option(Span<BackendOption> options, size_t& size, const char* key,
                   const OptionValue& value);
/// The same with a string; InvalidArgument when it is too long.
Error store_option(Span<BackendOption> options, size_t& size, const char* key, const char* value);

}  // namespace internal

/// Up to `MaxCapacity` options for one backend.
template <size_t MaxCapacity>
class BackendOptions {
 public:
  BackendOptions() = default;
  BackendOptions(const BackendOptions& other) = default;
  BackendOptions& operator=(const BackendOptions& other) = default;

  /// The options set, borrowed.
  Span<BackendOption> view() { return {options_, size_}; }

  /// Sets an option; one of the same key is replaced. InvalidArgument when there is no room or a
  /// string is too long.
  template <size_t N>
  Error set_option(const char (&key)[N], bool value) noexcept {
    return store<N>(key, OptionValue(value));
  }
  template <size_t N>
  Error set_option(const char (&key)[N], int value) noexcept {
    return store<N>(key, OptionValue(value));
  }
  template <size_t N>
  Error set_option(const char (&key)[N], const char* value) noexcept {
    return store<N>(key, value);
  }

  /// T is bool, int or const char*. NotFound for an unknown key, InvalidArgument for another type.
  template <typename T, size_t KeyLen>
  Error get_option(const char (&key)[KeyLen], T& out) const {
    static_assert(KeyLen <= kMaxOptionKeyLength, "the key is too long");
    return internal::read_option(internal::find_option({options_, size_}, key), out);
  }

 private:
  template <size_t N, typename Value>
  Error store(const char* key, const Value& value) {
    static_assert(N <= kMaxOptionKeyLength, "the key is too long");
    return internal::store_option({options_, MaxCapacity}, size_, key, value);
  }

  BackendOption options_[MaxCapacity]{};
  size_t size_ = 0;
};

}  // namespace executorch::runtime
