/// How an Expression is computed: its cheap steps in chains, whose intermediate results stay in
/// vector registers.
#pragma once

#include <executorch/cpu/nn/expression.h>

namespace executorch::cpu {

/// Operations on the accumulator v, the value that a chain carries from step to step:
/// ROW(name, new value of v). Those of two operands also read w, an array or the number `scale`.
#define ET_LINKS_OF_TWO(ROW)          \
  ROW(Add, hn::Add(v, w))             \
  ROW(Subtract, hn::Sub(v, w))        \
  ROW(SubtractFrom, hn::Sub(w, v))    \
  ROW(Multiply, hn::Mul(v, w))        \
  ROW(Divide, hn::Div(v, w))          \
  ROW(DivideFrom, hn::Div(w, v))      \
  ROW(Maximum, Larger(v, w))          \
  ROW(Minimum, Smaller(v, w))         \
  ROW(Equal, Holds(hn::Eq(v, w)))     \
  ROW(NotEqual, Fails(hn::Eq(v, w)))  \
  ROW(Less, Holds(hn::Lt(v, w)))      \
  ROW(LessEqual, Holds(hn::Le(v, w))) \
  ROW(Greater, Holds(hn::Gt(v, w)))   \
  ROW(GreaterEqual, Holds(hn::Ge(v, w)))
#define ET_LINKS_OF_ONE(ROW)                                                    \
  ROW(Copy, v)                                                                  \
  ROW(Square, hn::Mul(v, v))                                                    \
  ROW(Linear, hn::Add(hn::Mul(v, scale), shift))                                \
  ROW(Abs, hn::Abs(v))                                                          \
  ROW(Sign, hn::IfThenElseZero(hn::Gt(hn::Abs(v), zero), hn::CopySign(one, v))) \
  ROW(Floor, hn::Floor(v))                                                      \
  ROW(Ceil, hn::Ceil(v))                                                        \
  ROW(Trunc, hn::Trunc(v))                                                      \
  ROW(Round, hn::Round(v))                                                      \
  ROW(RectifyLeaky, hn::IfThenElse(hn::Gt(v, zero), v, hn::Mul(v, scale)))      \
  ROW(Clamp, KeepNaN(v, hn::Min(hn::Max(v, scale), shift)))
/// Those of three operands read the arrays w and x; each is a choice whose other names say which of
/// its operands the accumulator is.
#define ET_LINKS_OF_THREE(ROW)                            \
  ROW(SelectBy, hn::IfThenElse(hn::Eq(v, zero), x, w))    \
  ROW(SelectFirst, hn::IfThenElse(hn::Eq(w, zero), x, v)) \
  ROW(SelectSecond, hn::IfThenElse(hn::Eq(w, zero), v, x))

/// A step of an Expression as a link of a chain.
struct Link {
#define ET_ROW(name, value) name,
  enum class Code : uint8_t {
    ET_LINKS_OF_ONE(ET_ROW) ET_LINKS_OF_TWO(ET_ROW) ET_LINKS_OF_THREE(ET_ROW)
        None,  // the step is none of these
  };
#undef ET_ROW
  Code code = Code::None;
  bool is_number = false;  // whether w is the number `scale`
  uint8_t w = 0, x = 0;    // registers
  uint8_t length = 0;      // of the chain that begins here; 0 where none does
  float scale = 0, shift = 0;
};

/// What is the same for all tiles of an expression.
struct Plan {
  Link links[Expression::kMaxSteps];
  /// Whether a step reads an input, of which there is one element for a whole tile, as an array.
  bool as_array[Expression::kMaxRegisters] = {};
  bool is_float[Expression::kMaxInputs] = {};  // whether an input is of float
};

void make_plan(const Expression& e, Plan& plan);

}  // namespace executorch::cpu
