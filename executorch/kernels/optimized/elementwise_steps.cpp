#include <executorch/kernels/optimized/elementwise_steps.h>

#include <string_view>
#include <utility>

namespace executorch::optimized {

using cpu::Activation;
using cpu::Expression;
using Op = Expression::Op;

bool is_cast(const Graph& graph, int n) {
  return graph.is_cast(n) &&
         graph.tensor(graph.arg_id(n, 0)).scalar_type() != graph.tensor(graph.out(n)).scalar_type();
}

namespace {

constexpr std::pair<std::string_view, Op> kSame[] = {
    {"abs.out", Op::Abs},   {"sign.out", Op::Sign},   {"floor.out", Op::Floor},
    {"ceil.out", Op::Ceil}, {"trunc.out", Op::Trunc}, {"round.out", Op::Round},
};

class Translator {
 public:
  explicit Translator(const Graph& graph) : graph_(graph) {}

  std::optional<Computation> translate(int n) const {
    const std::string_view op = graph_.nodes()[n].op;
    if (op == "add.out" || op == "sub.out") return sum(n, op == "add.out");
    if (op == "mul.out") return product(n);
    if (op == "div.out") return quotient(n);
    if (op == "maximum.out") return binary(n, Op::Maximum);
    if (op == "minimum.out") return binary(n, Op::Minimum);
    if (op == "atan2.out") return binary(n, Op::Atan2);
    if (op == "add.Scalar_out" && alpha(n)) return linear(n, 1, number(n));
    if (op == "sub.Scalar_out" && alpha(n)) return linear(n, 1, negative(number(n)));
    if (op == "rsub.Scalar_out" && alpha(n)) return linear(n, -1, number(n));
    if (op == "mul.Scalar_out") return linear(n, number(n), 0);
    if (op == "div.Scalar_out") return scaled(n, Op::Quotient, 0, number(n));
    if (op == "neg.out") return linear(n, -1, 0);
    if (op == "reciprocal.out") return scaled(n, Op::Over, 0, 1);
    for (const auto& [name, same] : kSame) {
      if (op == name) return with(n, {.op = same});
    }
    if (op == "leaky_relu.out") return scaled(n, Op::RectifyLeaky, 0, number(n));
    if (op == "pow.Tensor_Scalar_out") return power(n);
    if (is_cast(graph_, n)) return with(n, {.op = Op::Act});
    if (is_copy(op) && graph_.is_bool(graph_.arg_id(n, 0))) {
      Computation c = with(n, {.op = Op::Act});
      c.is_bool[0] = true;
      return c;
    }
    if (const auto test = comparison(n, op)) return test;
    if (const auto chosen = choice(n, op)) return chosen;
#define ET_ROW(name, function) \
  if (op == #function ".out") return of_function(n, cpu::Function::name);
    ET_FUNCTIONS(ET_ROW)
#undef ET_ROW
    return activation(n, op);
  }

 private:
  std::optional<double> number(int n) const {
    return graph_.constant_number(graph_.arg(n, 1));
  }
  static std::optional<double> negative(std::optional<double> x) {
    return x.has_value() ? std::optional(-*x) : x;
  }
  static bool is_copy(std::string_view op) {
    return op == "_to_copy.out" || op == "_to_dim_order_copy.out";
  }
  bool alpha(int n) const {
    return graph_.constant_number(graph_.arg(n, 2)) == 1.0;
  }
  // The constant number that argument i of node n is; nothing if it is no such number.
  std::optional<double> element(int n, size_t i) const {
    const int v = graph_.arg_id(n, i);
    return graph_.is_tensor(v) && graph_.tensor(v).dim() <= 1 ? graph_.constant_element(v)
                                                              : std::nullopt;
  }

  Computation with(int n, const Expression::Step& step, int a = 0, int b = -1) const {
    Computation c;
    c.steps[c.n_steps++] = step;
    c.operands[0] = graph_.arg_id(n, static_cast<size_t>(a));
    if (b >= 0) c.operands[1] = graph_.arg_id(n, static_cast<size_t>(b));
    return c;
  }
  std::optional<Computation> of_function(int n, cpu::Function function) const {
    return with(n, {.op = Op::Apply, .function = function});
  }
  std::optional<Computation> binary(int n, Op op) const {
    return with(n, {.op = op}, 0, 1);
  }
  std::optional<Computation> scaled(int n, Op op, int a, std::optional<double> number) const {
    if (!number.has_value()) return std::nullopt;
    return with(n, {.op = op, .scale = static_cast<float>(*number)}, a);
  }
  std::optional<Computation> linear(int n, std::optional<double> scale, std::optional<double> shift,
                                    int a = 0) const {
    if (!scale.has_value() || !shift.has_value()) return std::nullopt;
    return with(n,
                {.op = Op::Linear,
                 .scale = static_cast<float>(*scale),
                 .shift = static_cast<float>(*shift)},
                a);
  }

  std::optional<Computation> sum(int n, bool plus) const {
    if (!alpha(n)) return std::nullopt;
    if (const auto y = element(n, 1)) return linear(n, 1, plus ? *y : -*y);
    if (const auto x = element(n, 0)) return linear(n, plus ? 1 : -1, *x, 1);
    return binary(n, plus ? Op::Add : Op::Subtract);
  }
  std::optional<Computation> product(int n) const {
    if (const auto y = element(n, 1)) return linear(n, *y, 0);
    if (const auto x = element(n, 0)) return linear(n, *x, 0, 1);
    return binary(n, Op::Multiply);
  }
  std::optional<Computation> quotient(int n) const {
    if (const auto y = element(n, 1)) return scaled(n, Op::Quotient, 0, *y);
    if (const auto x = element(n, 0)) return scaled(n, Op::Over, 1, *x);
    return binary(n, Op::Divide);
  }
  std::optional<Computation> power(int n) const {
    const auto exponent = number(n);
    if (exponent == 0.5) return of_function(n, cpu::Function::Sqrt);
    if (exponent != 2.0 && exponent != 3.0) return std::nullopt;
    Computation c = with(n, {.op = Op::Multiply});
    c.operands[1] = c.operands[0];
    // x^3: the second step multiplies x^2 by x.
    if (exponent == 3.0) c.steps[c.n_steps++] = {.op = Op::Multiply};
    return c;
  }

  std::optional<Computation> comparison(int n, std::string_view op) const {
    using Comparison = Expression::Comparison;
    constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
        {"eq.", Comparison::Equal},   {"ne.", Comparison::NotEqual},
        {"lt.", Comparison::Less},    {"le.", Comparison::LessEqual},
        {"gt.", Comparison::Greater}, {"ge.", Comparison::GreaterEqual},
    };
    for (const auto& [prefix, comparison] : kComparisons) {
      if (!op.starts_with(prefix)) continue;
      Expression::Step step = {.op = Op::Compare, .comparison = comparison};
      std::optional<Computation> c;
      if (op.ends_with("Scalar_out")) {
        step.op = Op::CompareTo;
        if (const auto y = number(n)) {
          step.scale = static_cast<float>(*y);
          c = with(n, step);
        }
      } else if (type(n, 0) == type(n, 1)) {
        c = with(n, step, 0, 1);
      }
      if (c.has_value()) c->gives_bool = true;
      return c;
    }
    return std::nullopt;
  }
  // Operations with operands of type Bool, which are 0 or 1 in an expression.
  std::optional<Computation> choice(int n, std::string_view op) const {
    std::optional<Computation> c;
    if (op == "where.self_out" && type(n, 1) == type(n, 2)) {
      c = with(n, {.op = Op::Select}, 0, 1);
      c->operands[2] = graph_.arg_id(n, 2);
      c->is_bool[0] = true;
      return c;
    }
    if (op == "logical_and.out" || op == "bitwise_and.Tensor_out") c = binary(n, Op::Multiply);
    if (op == "logical_or.out" || op == "bitwise_or.Tensor_out") c = binary(n, Op::Maximum);
    if (op == "logical_not.out" || op == "bitwise_not.out") c = linear(n, -1, 1);
    if (c.has_value()) c->is_bool[0] = c->is_bool[1] = c->gives_bool = true;
    return c;
  }
  // The type of argument i of node n; Undefined if it is no tensor.
  aten::ScalarType type(int n, size_t i) const {
    const int v = graph_.arg_id(n, i);
    return graph_.is_tensor(v) ? graph_.tensor(v).scalar_type() : aten::ScalarType::Undefined;
  }

  std::optional<Computation> activation(int n, std::string_view op) const {
    Expression::Step step = {.op = Op::Act};
    Activation& act = step.act;
    using Kind = Activation::Kind;
    if (op == "relu.out") {
      act = cpu::relu();
    } else if (op == "sigmoid.out") {
      act.kind = Kind::Sigmoid;
    } else if (op == "tanh.out") {
      act.kind = Kind::Tanh;
    } else if (op == "gelu.out" && graph_.arg(n, 1)->isString()) {
      act.kind = graph_.arg(n, 1)->toString() == "tanh" ? Kind::GeluTanh : Kind::Gelu;
    } else if (op == "hardtanh.out" || op == "clamp.out") {
      act.kind = Kind::Clamp;
      if (!bound(n, 1, act.low) || !bound(n, 2, act.high)) return std::nullopt;
    } else {
      return std::nullopt;
    }
    return with(n, step);
  }
  bool bound(int n, size_t i, float& bound) const {
    const auto known = graph_.constant_number(graph_.arg(n, i));
    if (known.has_value()) bound = static_cast<float>(*known);
    return known.has_value() || graph_.arg(n, i)->isNone();
  }

  const Graph& graph_;
};

}  // namespace

std::optional<Computation> translate(const Graph& graph, int n) {
  return Translator(graph).translate(n);
}

}  // namespace executorch::optimized
