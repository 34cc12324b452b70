#include <executorch/kernels/prim_ops/arguments.h>
#include <executorch/kernels/prim_ops/tables.h>

#include <cinttypes>
#include <cmath>
#include <limits>

namespace torch::executor::function {
namespace {

/// An Int or a Double argument.
struct Number {
  bool is_int;
  int64_t i;
  double d;  // the value in either case
};

bool read_number(KernelRuntimeContext& ctx, const char* op, const EValue& value, Number& out) {
  if (value.isInt()) {
    out = {true, value.toInt(), static_cast<double>(value.toInt())};
    return true;
  }
  if (value.isDouble()) {
    out = {false, 0, value.toDouble()};
    return true;
  }
  return fail_type(ctx, op, "an Int or a Double", value);
}

bool fail_overflow(KernelRuntimeContext& ctx, const char* op, int64_t a, int64_t b) {
  ET_LOG(Error, "%s: the result for %" PRId64 " and %" PRId64 " does not fit 64 bits", op, a, b);
  ctx.fail(Error::InvalidArgument);
  return false;
}

bool check_divisor(KernelRuntimeContext& ctx, const char* op, int64_t a, int64_t b) {
  ET_REQUIRE(ctx, b != 0, InvalidArgument, false, "%s: %" PRId64 " is divided by zero", op, a);
  if (a == std::numeric_limits<int64_t>::min() && b == -1) return fail_overflow(ctx, op, a, b);
  return true;
}

bool to_int(KernelRuntimeContext& ctx, const char* op, double value, int64_t& out) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  ET_REQUIRE(ctx, value >= -kLimit && value < kLimit, InvalidArgument, false,
             "%s: %g has no 64-bit integer value", op, value);
  out = static_cast<int64_t>(value);
  return true;
}

// An arithmetic operator: `ints` says false once the context failed.
struct Add {
  static constexpr const char* kName = "executorch_prim::add.Scalar";
  static bool ints(KernelRuntimeContext& ctx, int64_t a, int64_t b, int64_t& out) {
    return !__builtin_add_overflow(a, b, &out) || fail_overflow(ctx, kName, a, b);
  }
  static double doubles(double a, double b) { return a + b; }
};
struct Sub {
  static constexpr const char* kName = "executorch_prim::sub.Scalar";
  static bool ints(KernelRuntimeContext& ctx, int64_t a, int64_t b, int64_t& out) {
    return !__builtin_sub_overflow(a, b, &out) || fail_overflow(ctx, kName, a, b);
  }
  static double doubles(double a, double b) { return a - b; }
};
struct Mul {
  static constexpr const char* kName = "executorch_prim::mul.Scalar";
  static bool ints(KernelRuntimeContext& ctx, int64_t a, int64_t b, int64_t& out) {
    return !__builtin_mul_overflow(a, b, &out) || fail_overflow(ctx, kName, a, b);
  }
  static double doubles(double a, double b) { return a * b; }
};
/// Python's floor division.
struct FloorDiv {
  static constexpr const char* kName = "executorch_prim::floordiv.Scalar";
  static bool ints(KernelRuntimeContext& ctx, int64_t a, int64_t b, int64_t& out) {
    if (!check_divisor(ctx, kName, a, b)) return false;
    out = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return true;
  }
  static double doubles(double a, double b) {
    if (b == 0) return std::copysign(std::numeric_limits<double>::infinity(), a);
    const double remainder = std::fmod(a, b);
    const double quotient = (a - remainder) / b;
    return remainder != 0 && (b < 0) != (remainder < 0) ? quotient - 1 : quotient;
  }
};

template <class Op>
void arithmetic(KernelRuntimeContext& ctx, Span<EValue*> args) {
  Number a, b;
  if (!check_number_call(ctx, Op::kName, args, 3) || !read_number(ctx, Op::kName, *args[0], a) ||
      !read_number(ctx, Op::kName, *args[1], b)) {
    return;
  }
  if (a.is_int && b.is_int) {
    int64_t result;
    if (Op::ints(ctx, a.i, b.i, result)) *args[2] = EValue(result);
  } else {
    *args[2] = EValue(Op::doubles(a.d, b.d));
  }
}

void truediv(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::truediv.Scalar";
  Number a, b;
  if (!check_number_call(ctx, kName, args, 3) || !read_number(ctx, kName, *args[0], a) ||
      !read_number(ctx, kName, *args[1], b)) {
    return;
  }
  *args[2] = EValue(a.d / b.d);
}

// Operators on two Ints.
struct Mod {
  static constexpr const char* kName = "executorch_prim::mod";
  static bool ints(KernelRuntimeContext& ctx, int64_t a, int64_t b, int64_t& out) {
    if (!check_divisor(ctx, kName, a, b)) return false;
    out = a % b;
    return true;
  }
};
struct IntDiv {  // of old programs: truncates
  static constexpr const char* kName = "executorch_prim::floordiv.int";
  static bool ints(KernelRuntimeContext& ctx, int64_t a, int64_t b, int64_t& out) {
    if (!check_divisor(ctx, kName, a, b)) return false;
    out = a / b;
    return true;
  }
};
struct SymMax {
  static constexpr const char* kName = "executorch_prim::sym_max.Scalar";
  static bool ints(KernelRuntimeContext&, int64_t a, int64_t b, int64_t& out) {
    out = a > b ? a : b;
    return true;
  }
};
struct SymMin {
  static constexpr const char* kName = "executorch_prim::sym_min.Scalar";
  static bool ints(KernelRuntimeContext&, int64_t a, int64_t b, int64_t& out) {
    out = a < b ? a : b;
    return true;
  }
};

template <class Op>
void on_ints(KernelRuntimeContext& ctx, Span<EValue*> args) {
  if (!check_number_call(ctx, Op::kName, args, 3)) return;
  for (size_t i = 0; i < 2; ++i) {
    if (!args[i]->isInt()) return void(fail_type(ctx, Op::kName, "an Int", *args[i]));
  }
  int64_t result;
  if (Op::ints(ctx, args[0]->toInt(), args[1]->toInt(), result)) *args[2] = EValue(result);
}

// Comparisons: of two numbers (exactly when both are Int) or of two Bools.
struct Eq {
  static constexpr const char* kName = "executorch_prim::eq.Scalar";
  template <class T>
  static bool holds(T a, T b) {
    return a == b;
  }
};
struct Gt {
  static constexpr const char* kName = "executorch_prim::gt.Scalar";
  template <class T>
  static bool holds(T a, T b) {
    return a > b;
  }
};
struct Lt {
  static constexpr const char* kName = "executorch_prim::lt.Scalar";
  template <class T>
  static bool holds(T a, T b) {
    return a < b;
  }
};
struct Ge {
  static constexpr const char* kName = "executorch_prim::ge.Scalar";
  template <class T>
  static bool holds(T a, T b) {
    return a >= b;
  }
};
struct Le {
  static constexpr const char* kName = "executorch_prim::le.Scalar";
  template <class T>
  static bool holds(T a, T b) {
    return a <= b;
  }
};

template <class Op>
void compare(KernelRuntimeContext& ctx, Span<EValue*> args) {
  if (!check_number_call(ctx, Op::kName, args, 3)) return;
  if (args[0]->isBool() && args[1]->isBool()) {
    *args[2] = EValue(Op::template holds<int>(args[0]->toBool(), args[1]->toBool()));
    return;
  }
  Number a, b;
  if (!read_number(ctx, Op::kName, *args[0], a) || !read_number(ctx, Op::kName, *args[1], b)) {
    return;
  }
  *args[2] = EValue(a.is_int && b.is_int ? Op::holds(a.i, b.i) : Op::holds(a.d, b.d));
}

void neg(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::neg.Scalar";
  Number a;
  if (!check_number_call(ctx, kName, args, 2) || !read_number(ctx, kName, *args[0], a)) return;
  if (!a.is_int) {
    *args[1] = EValue(-a.d);
    return;
  }
  int64_t result;
  if (__builtin_sub_overflow(int64_t{0}, a.i, &result)) {
    return void(fail_overflow(ctx, kName, 0, a.i));
  }
  *args[1] = EValue(result);
}

// Double to Int.
struct Ceil {
  static constexpr const char* kName = "executorch_prim::ceil.Scalar";
  static double of(double a) { return std::ceil(a); }
};
struct Round {
  static constexpr const char* kName = "executorch_prim::round.Scalar";
  static double of(double a) {  // half to even, whatever the rounding mode
    const double rounded = std::round(a);
    return std::fabs(a - std::trunc(a)) == 0.5 ? 2 * std::round(a / 2) : rounded;
  }
};
struct Trunc {
  static constexpr const char* kName = "executorch_prim::trunc.Scalar";
  static double of(double a) { return std::trunc(a); }
};

template <class Op>
void double_to_int(KernelRuntimeContext& ctx, Span<EValue*> args) {
  if (!check_number_call(ctx, Op::kName, args, 2)) return;
  if (!args[0]->isDouble()) return void(fail_type(ctx, Op::kName, "a Double", *args[0]));
  int64_t result;
  if (to_int(ctx, Op::kName, Op::of(args[0]->toDouble()), result)) *args[1] = EValue(result);
}

void sym_float(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::sym_float.Scalar";
  if (!check_number_call(ctx, kName, args, 2)) return;
  Number a;
  if (args[0]->isBool()) {
    *args[1] = EValue(args[0]->toBool() ? 1.0 : 0.0);
  } else if (read_number(ctx, kName, *args[0], a)) {
    *args[1] = EValue(a.d);
  }
}

void sym_int(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::sym_int.Scalar";
  if (!check_number_call(ctx, kName, args, 2)) return;
  Number a;
  if (args[0]->isBool()) {
    *args[1] = EValue(static_cast<int64_t>(args[0]->toBool()));
  } else if (read_number(ctx, kName, *args[0], a) &&
             (a.is_int || to_int(ctx, kName, std::trunc(a.d), a.i))) {
    *args[1] = EValue(a.i);
  }
}

void sym_not(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::sym_not.Scalar";
  if (!check_number_call(ctx, kName, args, 2)) return;
  if (!args[0]->isBool()) return void(fail_type(ctx, kName, "a Bool", *args[0]));
  *args[1] = EValue(!args[0]->toBool());
}

void sym_ite(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::sym_ite.Scalar";
  if (!check_number_call(ctx, kName, args, 4)) return;
  if (!args[0]->isBool()) return void(fail_type(ctx, kName, "a Bool", *args[0]));
  const EValue& chosen = args[0]->toBool() ? *args[1] : *args[2];
  if (!chosen.isScalar()) return void(fail_type(ctx, kName, "an Int, a Double or a Bool", chosen));
  *args[3] = chosen;
}

const Kernel kSymbolicOps[] = {
    Kernel(Add::kName, arithmetic<Add>),
    Kernel(Sub::kName, arithmetic<Sub>),
    Kernel(Mul::kName, arithmetic<Mul>),
    Kernel(FloorDiv::kName, arithmetic<FloorDiv>),
    Kernel("executorch_prim::truediv.Scalar", truediv),
    Kernel("executorch_prim::mod.Scalar", on_ints<Mod>),
    Kernel("executorch_prim::mod.int", on_ints<Mod>),
    Kernel(IntDiv::kName, on_ints<IntDiv>),
    Kernel(SymMax::kName, on_ints<SymMax>),
    Kernel(SymMin::kName, on_ints<SymMin>),
    Kernel(Eq::kName, compare<Eq>),
    Kernel(Gt::kName, compare<Gt>),
    Kernel(Lt::kName, compare<Lt>),
    Kernel(Ge::kName, compare<Ge>),
    Kernel(Le::kName, compare<Le>),
    Kernel("executorch_prim::neg.Scalar", neg),
    Kernel(Ceil::kName, double_to_int<Ceil>),
    Kernel(Round::kName, double_to_int<Round>),
    Kernel(Trunc::kName, double_to_int<Trunc>),
    Kernel("executorch_prim::sym_float.Scalar", sym_float),
    Kernel("executorch_prim::sym_int.Scalar", sym_int),
    Kernel("executorch_prim::sym_not.Scalar", sym_not),
    Kernel("executorch_prim::sym_ite.Scalar", sym_ite),
};

}  // namespace

Span<const Kernel> symbolic_ops() {
  return kSymbolicOps;
}

}  // namespace torch::executor::function
