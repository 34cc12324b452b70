/// Chains of the cheap steps of an Expression. A chain loads some vectors, runs all of its steps on
/// them, and stores the last result, so that intermediate results stay in vector registers.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_
#undef EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_
#else
#define EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/expression.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Operations on the accumulator v, the value that a chain carries from step to step:
/// ROW(name, new value of v). Those of two operands also read w, an array or the number `scale`.
#undef ET_LINKS_OF_TWO
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
#undef ET_LINKS_OF_ONE
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
#undef ET_LINKS_OF_THREE
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

/// The operands of a step in registers.
inline int Arity(const Expression::Step& s) {
  using Op = Expression::Op;
  if (s.op == Op::Select) return 3;
  return s.op <= Op::Atan2 || s.op == Op::Compare ? 2 : 1;
}

/// How many operands of a step are register r.
inline int Reads(const Expression::Step& s, uint8_t r) {
  const int arity = Arity(s);
  return (s.a == r) + (arity > 1 && s.b == r) + (arity > 2 && s.c == r);
}

/// The code of a comparison whose left operand, or if `swapped` the right one, is the accumulator.
inline Link::Code CodeOf(Expression::Comparison comparison, bool swapped) {
  using Comparison = Expression::Comparison;
  switch (comparison) {
    case Comparison::Equal:
      return Link::Code::Equal;
    case Comparison::NotEqual:
      return Link::Code::NotEqual;
    case Comparison::Less:
      return swapped ? Link::Code::Greater : Link::Code::Less;
    case Comparison::LessEqual:
      return swapped ? Link::Code::GreaterEqual : Link::Code::LessEqual;
    case Comparison::Greater:
      return swapped ? Link::Code::Less : Link::Code::Greater;
    case Comparison::GreaterEqual:
      return swapped ? Link::Code::LessEqual : Link::Code::GreaterEqual;
  }
  return Link::Code::None;
}

/// The link of a step whose operand in register `v` is the accumulator.
inline Link LinkOf(const Expression::Step& s, uint8_t v) {
  using Op = Expression::Op;
  using Code = Link::Code;
  const bool first = s.a == v;
  Link link = {.w = first ? s.b : s.a, .scale = s.scale, .shift = s.shift};
  const auto with = [&](Code code, bool is_number = false) {
    link.code = code;
    link.is_number = is_number;
    return link;
  };
#define ET_SAME(name) \
  case Op::name:      \
    return with(Code::name);
  switch (s.op) {
    ET_SAME(Add)
    ET_SAME(Maximum)
    ET_SAME(Minimum)
    ET_SAME(Linear)
    ET_SAME(Abs)
    ET_SAME(Sign)
    ET_SAME(Floor)
    ET_SAME(Ceil)
    ET_SAME(Trunc)
    ET_SAME(Round)
    ET_SAME(RectifyLeaky)
    case Op::Subtract:
      return with(first ? Code::Subtract : Code::SubtractFrom);
    case Op::Multiply:
      return with(s.a == s.b ? Code::Square : Code::Multiply);
    case Op::Divide:
      return with(first ? Code::Divide : Code::DivideFrom);
    case Op::Quotient:
      return with(Code::Divide, true);
    case Op::Over:
      return with(Code::DivideFrom, true);
    case Op::Compare:
      return with(CodeOf(s.comparison, !first));
    case Op::CompareTo:
      return with(CodeOf(s.comparison, false), true);
    case Op::Select:
      link.x = s.c == v && !first ? s.b : s.c;
      return with(first ? Code::SelectBy : s.b == v ? Code::SelectFirst : Code::SelectSecond);
    case Op::Act:
      link.scale = s.act.low;
      link.shift = s.act.high;
      if (s.act.kind == Activation::Kind::None) return with(Code::Copy);
      return with(s.act.kind == Activation::Kind::Clamp ? Code::Clamp : Code::None);
    case Op::Apply:
    case Op::Atan2:
      break;
  }
#undef ET_SAME
  return with(Code::None);
}

/// Whether step s + 1 is the only one that reads the result of step s, and reads it as one operand
/// (a square reads it as two).
inline bool Carries(const Expression& e, int s) {
  if (s + 1 >= e.n_steps) return false;
  const auto &step = e.steps[s], &next = e.steps[s + 1];
  const uint8_t r = step.to;
  const bool is_square = next.op == Expression::Op::Multiply && Reads(next, r) == 2;
  if (Reads(next, r) != 1 && !is_square) return false;
  for (int t = s + 1; t < e.n_steps && e.steps[t].to != r; ++t) {
    if (t + 1 < e.n_steps && Reads(e.steps[t + 1], r) > 0) return false;
  }
  return true;
}

/// What is the same for all tiles of an expression.
struct Plan {
  Link links[Expression::kMaxSteps];
  /// Whether a step reads an input, of which there is one element for a whole tile, as an array.
  bool as_array[Expression::kMaxRegisters] = {};
  bool is_float[Expression::kMaxInputs] = {};  // whether an input is of float
};

inline void MakePlan(const Expression& e, Plan& plan) {
  int begin = 0;  // of the chain
  for (int s = 0; s < e.n_steps; ++s) {
    const auto& step = e.steps[s];
    Link& link = plan.links[s];
    link = LinkOf(step, s > begin ? e.steps[s - 1].to : step.a);
    const bool is_link = link.code != Link::Code::None;
    if (Arity(step) == 3) plan.as_array[link.w] = plan.as_array[link.x] = true;
    if (!is_link) plan.as_array[step.a] = plan.as_array[step.b] = true;
    if (is_link) plan.links[begin].length = static_cast<uint8_t>(s - begin + 1);
    if (!is_link || !Carries(e, s)) begin = s + 1;
  }
}

/// The vectors that a chain computes side by side: enough to hide the cost of choosing the
/// operation, few enough to leave registers for its operands.
constexpr size_t kSideBySide = HWY_TARGET > HWY_AVX3&& HWY_ARCH_X86 ? 8 : 16;

/// The values of the registers, for a tile.
struct Registers {
  const float* data[Expression::kMaxRegisters];
  /// Whether all elements are data[r][0], the only one that is there.
  bool is_single[Expression::kMaxRegisters] = {};
};

/// Runs a chain, whose first step reads register `first`, on kVectors vectors from element `at` on,
/// or if kPartial on the `count` first lanes of one.
template <size_t kVectors, bool kPartial = false>
HWY_INLINE void RunLinks(const Link* links, uint8_t first, const Registers& registers, float* y,
                         size_t at, size_t count = 0) {
  using V = hn::Vec<hn::ScalableTag<float>>;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* p, size_t k) HWY_ATTR {
    if constexpr (kPartial) return LoadFloatsN(d, p, count);
    return hn::LoadU(d, p + k * lanes);
  };
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const auto Holds = [&](auto mask) HWY_ATTR { return hn::IfThenElseZero(mask, one); };
  const auto Fails = [&](auto mask) HWY_ATTR { return hn::IfThenZeroElse(mask, one); };
  V a[kVectors];
  if (registers.is_single[first]) {
    for (size_t k = 0; k < kVectors; ++k) a[k] = hn::Set(d, *registers.data[first]);
  } else {
    for (size_t k = 0; k < kVectors; ++k) a[k] = load(registers.data[first] + at, k);
  }
  for (const Link *l = links, *end = links + links->length; l != end; ++l) {
    const float* const left = registers.data[l->w] + at;
    const float* const right = registers.data[l->x] + at;
#define ET_EACH(w_value, x_value, value)  \
  for (size_t k = 0; k < kVectors; ++k) { \
    const V v = a[k];                     \
    [[maybe_unused]] const V w = w_value; \
    [[maybe_unused]] const V x = x_value; \
    a[k] = value;                         \
  }
#define ET_ONE(name, value)                                             \
  case Link::Code::name: {                                              \
    const V scale = hn::Set(d, l->scale), shift = hn::Set(d, l->shift); \
    ET_EACH(scale, shift, value)                                        \
    break;                                                              \
  }
#define ET_TWO(name, value)                                                         \
  case Link::Code::name:                                                            \
    if (l->is_number || registers.is_single[l->w]) {                                \
      const V number = hn::Set(d, l->is_number ? l->scale : *registers.data[l->w]); \
      ET_EACH(number, v, value)                                                     \
    } else {                                                                        \
      ET_EACH(load(left, k), v, value)                                              \
    }                                                                               \
    break;
#define ET_THREE(name, value)                     \
  case Link::Code::name:                          \
    ET_EACH(load(left, k), load(right, k), value) \
    break;
    switch (l->code) {
      ET_LINKS_OF_ONE(ET_ONE)
      ET_LINKS_OF_TWO(ET_TWO)
      ET_LINKS_OF_THREE(ET_THREE)
      case Link::Code::None:
        break;
    }
#undef ET_THREE
#undef ET_TWO
#undef ET_ONE
#undef ET_EACH
  }
  for (size_t k = 0; k < kVectors; ++k) {
    if constexpr (kPartial) {
      StoreFloatsN(a[k], d, y + at, count);
    } else {
      hn::StoreU(a[k], d, y + at + k * lanes);
    }
  }
}

/// Runs the chain that begins at `links`, whose first step reads register `first`, on n elements.
void RunChain(const Link* links, uint8_t first, const Registers& registers, float* y,
              int64_t count) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>()), n = static_cast<size_t>(count);
  size_t i = 0;
  for (; i + kSideBySide * lanes <= n; i += kSideBySide * lanes) {
    RunLinks<kSideBySide>(links, first, registers, y, i);
  }
  for (; i + 4 * lanes <= n; i += 4 * lanes) RunLinks<4>(links, first, registers, y, i);
  for (; i + lanes <= n; i += lanes) RunLinks<1>(links, first, registers, y, i);
  if (i < n) RunLinks<1, true>(links, first, registers, y, i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per target
