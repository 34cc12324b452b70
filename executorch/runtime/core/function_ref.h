#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace executorch::runtime {

/// A borrowed callable: two pointers, no allocation. The callable must outlive the reference, so
/// this is a type for parameters, not for members.
template <typename Fn>
class FunctionRef;

template <typename Ret, typename... Params>
class FunctionRef<Ret(Params...)> {
 public:
  FunctionRef() = default;
  FunctionRef(std::nullptr_t) {}

  template <typename Callable,
            std::enable_if_t<!std::is_same_v<std::decay_t<Callable>, FunctionRef> &&
                                 std::is_invocable_r_v<Ret, Callable&, Params...>,
                             int> = 0>
  FunctionRef(Callable&& callable)
      : call_(call<std::remove_reference_t<Callable>>),
        callable_(reinterpret_cast<intptr_t>(&callable)) {}

  Ret operator()(Params... params) const {
    return call_(callable_, std::forward<Params>(params)...);
  }

  explicit operator bool() const { return call_ != nullptr; }

 private:
  template <typename Callable>
  static Ret call(intptr_t callable, Params... params) {
    return (*reinterpret_cast<Callable*>(callable))(std::forward<Params>(params)...);
  }

  Ret (*call_)(intptr_t callable, Params... params) = nullptr;
  intptr_t callable_ = 0;
};

}  // namespace executorch::runtime
