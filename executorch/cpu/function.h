/// Functions of one element.
#pragma once

#include <cmath>
#include <cstdint>

namespace executorch::cpu {

/// The table of functions; each row is ROW(name, name of the C function and of the operator). The
/// engine has a vector function `name` for each (nn/math-inl.h, nn/functions-inl.h). Log2 is exact
/// for powers of 2.
// clang-format off
#define ET_FUNCTIONS(ROW)                                                                         \
  ROW(Acos, acos) ROW(Acosh, acosh) ROW(Asin, asin) ROW(Asinh, asinh) ROW(Atan, atan)             \
  ROW(Atanh, atanh) ROW(Cos, cos) ROW(Cosh, cosh) ROW(Erf, erf) ROW(Exp, exp) ROW(Expm1, expm1)   \
  ROW(Log, log) ROW(Log10, log10) ROW(Log1p, log1p) ROW(Log2, log2) ROW(Rsqrt, rsqrt)             \
  ROW(Sin, sin) ROW(Sinh, sinh) ROW(Sqrt, sqrt) ROW(Tan, tan)
// clang-format on

#define ET_ROW(name, op) name,
enum class Function : uint8_t { ET_FUNCTIONS(ET_ROW) };
#undef ET_ROW

/// The functions of the table in double.
namespace in_double {
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::cos, std::cosh;
using std::erf, std::exp, std::expm1, std::log, std::log10, std::log1p, std::log2, std::sin;
using std::sinh, std::sqrt, std::tan;
inline double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
inline double apply(Function function, double x) {
  switch (function) {
#define ET_ROW(name, op) \
  case Function::name:   \
    return op(x);
    ET_FUNCTIONS(ET_ROW)
#undef ET_ROW
  }
  return x;
}
}  // namespace in_double

}  // namespace executorch::cpu
