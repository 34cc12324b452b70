#include <executorch/kernels/optimized/epilogue.h>

namespace executorch::optimized {

using cpu::Activation;

namespace {

Activation plain(Activation::Kind kind) {
  Activation act;
  act.kind = kind;
  return act;
}

}  // namespace

Epilogue::Epilogue(const Graph& graph, int root, bool takes_more, Term addend)
    : graph_(graph),
      block_(graph.nodes()[root].block),
      takes_more_(takes_more),
      type_(graph.tensor(graph.out(root)).scalar_type()),
      last_(root) {
  state_.addend = addend;
  kept_ = state_;
  size_t n_kept = 0;
  for (int v = graph.out(root); graph.interior(v, block_);) {
    const auto& uses = graph.values()[v].uses;
    const int next = uses.size() == 1 ? uses.front() : find_gated(v, uses);
    if (next < 0 || graph.nodes()[next].block != block_ || !graph.deferrable(next) ||
        steps_.size() == Graph::kMostSteps) {
      break;
    }
    graph.effort().spend(1);
    const int out = graph.out(next);
    if (!graph.is_float(out) || graph.tensor(out).scalar_type() != type_) break;
    if (uses.size() == 1 && !absorb(next, v)) break;
    v = out;
    if (!graph.is_view(next)) {
      last_ = next;
      n_kept = steps_.size();
      kept_ = state_;
    }
  }
  steps_.resize(n_kept);
}

bool Epilogue::is_operand(int v) const {
  return graph_.is_float(v) && graph_.tensor(v).scalar_type() == type_ && graph_.stable(v);
}

bool Epilogue::absorb(int n, int v) {
  if (const auto step = graph_.step(n, graph_.out(n))) {
    if (!takes_more_ || !step->keeps_order()) return false;
    steps_.push_back(*step);
    return true;
  }
  return absorb_activation(n) || absorb_term(n, v);
}

bool Epilogue::set(Activation act, const char* name) {
  if (state_.act.kind != Activation::Kind::None) return false;
  state_.act = act;
  state_.act_last = state_.residual.value >= 0;
  state_.name += name;
  return true;
}

bool Epilogue::absorb_activation(int n) {
  using Kind = Activation::Kind;
  if (is(n, "relu.out")) return set(cpu::relu(), "+relu");
  if (is(n, "sigmoid.out")) return set(plain(Kind::Sigmoid), "+sigmoid");
  if (is(n, "tanh.out")) return set(plain(Kind::Tanh), "+tanh");
  if (is(n, "gelu.out") && graph_.arg(n, 1)->isString()) {
    const bool is_tanh = graph_.arg(n, 1)->toString() == "tanh";
    return set(plain(is_tanh ? Kind::GeluTanh : Kind::Gelu), "+gelu");
  }
  if (is(n, "hardtanh.out") || is(n, "clamp.out")) {
    Activation act = plain(Kind::Clamp);
    return bound(n, 1, act.low) && bound(n, 2, act.high) && set(act, "+clamp");
  }
  return false;
}

bool Epilogue::bound(int n, size_t i, float& bound) const {
  const auto number = graph_.constant_number(graph_.arg(n, i));
  if (number.has_value()) bound = static_cast<float>(*number);
  return number.has_value() || graph_.arg(n, i)->isNone();
}

// Finds x * sigmoid(x) or x * clamp(x + 3, 0, 6) / 6. Returns its last node, or -1.
int Epilogue::find_gated(int v, const std::vector<int>& uses) {
  if (uses.size() != 2 || !is(uses[1], "mul.out")) return -1;
  const int product = uses[1];
  const int x = graph_.arg_id(product, 0), y = graph_.arg_id(product, 1);
  int gate = x == v ? y : x;
  const auto made_by = [&](std::string_view op) {
    const int n = graph_.def(gate);
    return is(n, op) && graph_.only_use(gate) >= 0 && graph_.interior(gate, block_) &&
           graph_.deferrable(n);
  };
  if ((x == v) == (y == v)) return -1;
  if (made_by("sigmoid.out")) {
    const bool fits = graph_.arg_id(graph_.def(gate), 0) == v;
    return fits && set(plain(Activation::Kind::Silu), "+silu") ? product : -1;
  }
  // Each of the two bounds may be applied by an instruction of its own.
  Activation clamp = plain(Activation::Kind::Clamp);
  while (made_by("clamp.out") || made_by("hardtanh.out")) {
    const int n = graph_.def(gate);
    if (!bound(n, 1, clamp.low) || !bound(n, 2, clamp.high)) return -1;
    gate = graph_.arg_id(n, 0);
  }
  if (clamp.low != 0.0f || clamp.high != 6.0f ||
      !(made_by("add.out") || made_by("add.Scalar_out"))) {
    return -1;
  }
  const int sum = graph_.def(gate);
  const int last = graph_.only_use(graph_.out(product));
  if (graph_.arg_id(sum, 0) != v || graph_.constant_element(graph_.arg_id(sum, 1)) != 3.0 ||
      graph_.constant_number(graph_.arg(sum, 2)) != 1.0 ||
      !graph_.interior(graph_.out(product), block_) ||
      !(is(last, "div.out") || is(last, "div.Scalar_out")) ||
      graph_.constant_element(graph_.arg_id(last, 1)) != 6.0) {
    return -1;
  }
  return set(plain(Activation::Kind::HardSwish), "+hardswish") ? last : -1;
}

bool Epilogue::absorb_term(int n, int v) {
  if (!is(n, "add.out") || graph_.constant_number(graph_.arg(n, 2)) != 1.0) return false;
  const int x = graph_.arg_id(n, 0), y = graph_.arg_id(n, 1);
  const int other = x == v ? y : x;
  if (other == v || !is_operand(other)) return false;
  const size_t bytes = graph_.values()[v].nbytes;
  if (graph_.values()[graph_.out(n)].nbytes != bytes) return false;
  const bool is_full = graph_.values()[other].nbytes == bytes;
  const Term term{other, steps_.size()};
  if (!is_full) {
    if (!takes_more_ || state_.addend.value >= 0 || state_.residual.value >= 0 ||
        state_.act.kind != Activation::Kind::None) {
      return false;
    }
    state_.addend = term;
    state_.name += "+bias";
    return true;
  }
  if (state_.residual.value >= 0) return false;
  state_.residual = term;
  state_.name += "+residual";
  return true;
}

}  // namespace executorch::optimized
