#include <executorch/cpu/nn/expression_plan.h>

namespace executorch::cpu {
namespace {

using Op = Expression::Op;
using Code = Link::Code;

// The operands of a step in registers.
int arity(const Expression::Step& s) {
  if (s.op == Op::Select) return 3;
  return s.op <= Op::Atan2 || s.op == Op::Compare ? 2 : 1;
}

// How many operands of a step are register r.
int reads(const Expression::Step& s, uint8_t r) {
  const int n = arity(s);
  return (s.a == r) + (n > 1 && s.b == r) + (n > 2 && s.c == r);
}

// The code of a comparison whose left operand, or if `swapped` the right one, is the accumulator.
Code code_of(Expression::Comparison comparison, bool swapped) {
  using Comparison = Expression::Comparison;
  switch (comparison) {
    case Comparison::Equal:
      return Code::Equal;
    case Comparison::NotEqual:
      return Code::NotEqual;
    case Comparison::Less:
      return swapped ? Code::Greater : Code::Less;
    case Comparison::LessEqual:
      return swapped ? Code::GreaterEqual : Code::LessEqual;
    case Comparison::Greater:
      return swapped ? Code::Less : Code::Greater;
    case Comparison::GreaterEqual:
      return swapped ? Code::LessEqual : Code::GreaterEqual;
  }
  return Code::None;
}

// The link of a step whose operand in register `v` is the accumulator.
Link link_of(const Expression::Step& s, uint8_t v) {
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
      return with(code_of(s.comparison, !first));
    case Op::CompareTo:
      return with(code_of(s.comparison, false), true);
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

// Whether step s + 1 is the only one that reads the result of step s, and reads it as one operand
// (a square reads it as two).
bool carries(const Expression& e, int s) {
  if (s + 1 >= e.n_steps) return false;
  const auto &step = e.steps[s], &next = e.steps[s + 1];
  const uint8_t r = step.to;
  const bool is_square = next.op == Op::Multiply && reads(next, r) == 2;
  if (reads(next, r) != 1 && !is_square) return false;
  for (int t = s + 1; t < e.n_steps && e.steps[t].to != r; ++t) {
    if (t + 1 < e.n_steps && reads(e.steps[t + 1], r) > 0) return false;
  }
  return true;
}

}  // namespace

void make_plan(const Expression& e, Plan& plan) {
  for (int w = 0; w < e.n_inputs; ++w) {
    plan.is_float[w] = !e.is_bool[w] && e.type_of(w) == Type::F32;
  }
  int begin = 0;  // of the chain
  for (int s = 0; s < e.n_steps; ++s) {
    const auto& step = e.steps[s];
    Link& link = plan.links[s];
    link = link_of(step, s > begin ? e.steps[s - 1].to : step.a);
    const bool is_link = link.code != Code::None;
    if (!is_link) plan.as_array[step.a] = plan.as_array[step.b] = true;
    if (is_link) plan.links[begin].length = static_cast<uint8_t>(s - begin + 1);
    if (!is_link || !carries(e, s)) begin = s + 1;
  }
}

}  // namespace executorch::cpu
