#pragma once

#include <executorch/extension/llm/tokenizers/error.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tokenizers {

/// A value of type T, or the error that came in its place.
template <typename T>
class Result final {
 public:
  typedef T value_type;

  /// An error; Error::Ok counts as Error::Internal, since there is no value.
  /* implicit */ Result(Error error) : error_(error == Error::Ok ? Error::Internal : error) {}
  /* implicit */ Result(const T& val) : value_(val), error_(Error::Ok) {}
  /* implicit */ Result(T&& val) : value_(std::move(val)), error_(Error::Ok) {}
  Result(Result&& rhs) noexcept : error_(rhs.error_) {
    if (ok()) new (&value_) T(std::move(rhs.value_));
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;

  ~Result() {
    if (ok()) value_.~T();
  }

  [[nodiscard]] bool ok() const { return error_ == Error::Ok; }
  [[nodiscard]] Error error() const { return error_; }

  /// The value. Ends the process where there is none: ask ok() first.
  T& get() {
    check_ok();
    return value_;
  }
  const T& get() const {
    check_ok();
    return value_;
  }
  const T& operator*() const&;
  T& operator*() &;
  const T* operator->() const;
  T* operator->();

 private:
  void check_ok() const {
    if (!ok()) {
      TK_LOG(Fatal, "Result has no value, but error %u", static_cast<unsigned>(error_));
      std::abort();
    }
  }

  union {
    T value_;
  };
  Error error_;
};

template <typename T>
const T& Result<T>::operator*() const& {
  return get();
}
template <typename T>
T& Result<T>::operator*() & {
  return get();
}
template <typename T>
const T* Result<T>::operator->() const {
  return &get();
}
template <typename T>
T* Result<T>::operator->() {
  return &get();
}

}  // namespace tokenizers

/// The value of a Result; where it has none, throws std::runtime_error.
#define TK_UNWRAP_THROW(result__)                                                           \
  ({                                                                                        \
    auto unwrapped__ = (result__);                                                          \
    if (!unwrapped__.ok()) {                                                                \
      throw std::runtime_error("Error: " +                                                  \
                               std::to_string(static_cast<unsigned>(unwrapped__.error()))); \
    }                                                                                       \
    std::move(unwrapped__.get());                                                           \
  })

/// The value of a Result; where it has none, returns its error from the calling function, after
/// logging the message (format and arguments as of printf) if there is one.
#define TK_UNWRAP(result__, ...) TK_INTERNAL_UNWRAP(result__, ##__VA_ARGS__)

#define TK_INTERNAL_UNWRAP(...) \
  TK_INTERNAL_UNWRAP_SELECT(__VA_ARGS__, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(__VA_ARGS__)
#define TK_INTERNAL_UNWRAP_SELECT(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, N, ...) \
  TK_INTERNAL_UNWRAP_##N
#define TK_INTERNAL_UNWRAP_1(result__) \
  ({                                   \
    auto unwrapped__ = (result__);     \
    if (!unwrapped__.ok()) {           \
      return unwrapped__.error();      \
    }                                  \
    std::move(unwrapped__.get());      \
  })
#define TK_INTERNAL_UNWRAP_2(result__, message__, ...) \
  ({                                                   \
    auto unwrapped__ = (result__);                     \
    if (!unwrapped__.ok()) {                           \
      TK_LOG(Error, message__, ##__VA_ARGS__);         \
      return unwrapped__.error();                      \
    }                                                  \
    std::move(unwrapped__.get());                      \
  })
#define TK_INTERNAL_UNWRAP_3 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_4 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_5 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_6 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_7 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_8 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_9 TK_INTERNAL_UNWRAP_2
#define TK_INTERNAL_UNWRAP_10 TK_INTERNAL_UNWRAP_2
