#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime {
namespace internal {

/// Logs that a Result was used as if it held a value, and aborts.
ET_NORETURN void abort_on_error_access(Error error);

}  // namespace internal

/// A value of type T, or the error that kept it from being made.
///
///   Result<size_t> size = loader.size();
///   if (!size.ok()) return size.error();
///   use(*size);
///
/// It can be moved but not copied. A Result made from Error::Ok holds Error::Internal. Reading the
/// value of a Result that holds an error is a defect of the caller and aborts.
template <typename T>
class [[nodiscard]] Result final {
 public:
  typedef T value_type;

  Result(Error error) : error_(error == Error::Ok ? Error::Internal : error), has_error_(true) {}
  Result(const T& val) : value_(val), has_error_(false) {}
  Result(T&& val) : value_(std::move(val)), has_error_(false) {}
  Result(Result&& rhs) noexcept : has_error_(rhs.has_error_) {
    if (has_error_) {
      error_ = rhs.error_;
    } else {
      new (const_cast<std::remove_const_t<T>*>(&value_)) T(std::move(rhs.value_));
    }
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;
  ~Result() {
    if (!has_error_) value_.~T();
  }

  bool ok() const { return !has_error_; }
  Error error() const { return has_error_ ? error_ : Error::Ok; }

  T& get() { return check(), value_; }
  const T& get() const { return check(), value_; }
  const T& operator*() const& { return get(); }
  T& operator*() & { return get(); }
  const T* operator->() const { return &get(); }
  T* operator->() { return &get(); }

 private:
  void check() const {
    if (ET_UNLIKELY(has_error_)) internal::abort_on_error_access(error_);
  }

  union {
    T value_;
    Error error_;
  };
  bool has_error_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Result;
}  // namespace torch::executor

/// The value of a Result as an expression (a GNU statement expression): on an error the calling
/// function returns it, after logging the message if one is given.
#define ET_UNWRAP(result__, ...)                 \
  ({                                             \
    auto et_result__ = (result__);               \
    if (!et_result__.ok()) {                     \
      ET_INTERNAL_LOG_IF_GIVEN(_, ##__VA_ARGS__) \
      return et_result__.error();                \
    }                                            \
    std::move(*et_result__);                     \
  })

/// ET_ASSIGN_OR_RETURN(var, expr[, format, ...]): the same as a statement; `var` may declare.
#define ET_ASSIGN_OR_RETURN(var__, result__, ...) \
  ET_INTERNAL_ASSIGN(ET_INTERNAL_UNIQUE(et_result_, __COUNTER__), var__, result__, ##__VA_ARGS__)
#define ET_INTERNAL_ASSIGN(name__, var__, result__, ...) \
  auto name__ = (result__);                              \
  if (!name__.ok()) {                                    \
    ET_INTERNAL_LOG_IF_GIVEN(_, ##__VA_ARGS__)           \
    return name__.error();                               \
  }                                                      \
  var__ = std::move(*name__)
#define ET_INTERNAL_UNIQUE(prefix, count) ET_INTERNAL_UNIQUE_IMPL(prefix, count)
#define ET_INTERNAL_UNIQUE_IMPL(prefix, count) prefix##count
