#include <executorch/kernels/optimized/attention_call.h>

#include <limits>

namespace executorch::optimized {
namespace {

using aten::ScalarType;
using cpu::Attention;

class Match {
 public:
  Match(Graph& graph, Arena& arena, CausalMasks& causal_masks, int softmax)
      : graph_(graph),
        arena_(arena),
        causal_masks_(causal_masks),
        softmax_(softmax),
        block_(graph.nodes()[softmax].block) {}

  void run() {
    const int in = graph_.arg_id(softmax_, 0);
    const int weights = graph_.out(softmax_);
    const auto dim = graph_.constant_number(graph_.arg(softmax_, 1));
    if (!graph_.is_float(in) || !graph_.is_float(weights) || !dim.has_value() ||
        (*dim != -1 && *dim != static_cast<double>(graph_.tensor(in).dim() - 1))) {
      return;
    }
    const int tail = find_safe_tail(in, weights);
    if (!walk_scores(in, tail >= 0 ? 2 : 1)) return;
    if (!walk_to_second_product(tail >= 0 ? graph_.out(tail) : weights)) return;
    walk_out();
    emit(tail >= 0);
  }

 private:
  bool is(int n, std::string_view op) const { return graph_.is(n, op); }
  bool is_interior(int v) const { return graph_.interior(v, block_); }

  // Finds where(not any(not (in == -inf)), 0, weights), by which rows without a visible key give
  // zeros. Returns the node, or -1.
  int find_safe_tail(int in, int weights) const {
    int tail = -1;
    for (int use : graph_.values()[weights].uses) {
      if (is(use, "where.self_out") && graph_.arg_id(use, 2) == weights) {
        tail = use;
      } else if (!is(use, "full_like.out")) {
        return -1;
      }
    }
    if (tail < 0 || !is_interior(weights) || !is_zero(graph_.arg_id(tail, 1))) return -1;
    int v = graph_.arg_id(tail, 0);
    for (const std::string_view op :
         {"logical_not.out", "any.out", "logical_not.out", "eq.Scalar_out"}) {
      const int n = graph_.def(v);
      if (!is(n, op) || !is_interior(v)) return -1;
      if (op == "any.out" && !is_last_dim(n)) return -1;
      v = graph_.arg_id(n, 0);
      if (op == "eq.Scalar_out" &&
          graph_.constant_number(graph_.arg(n, 1)) != -std::numeric_limits<double>::infinity()) {
        return -1;
      }
    }
    return v == in ? tail : -1;
  }
  bool is_last_dim(int n) const {
    const auto dim = graph_.constant_number(graph_.arg(n, 1));
    return graph_.constant_number(graph_.arg(n, 2)) == 1.0 &&
           (dim == -1.0 ||
            dim == static_cast<double>(graph_.tensor(graph_.arg_id(n, 0)).dim() - 1));
  }
  bool is_zero(int v) const {
    const int n = graph_.def(v);
    if (is(n, "full_like.out") || is(n, "full.out")) {
      return graph_.constant_number(graph_.arg(n, 1)) == 0.0;
    }
    return graph_.constant_element(v) == 0.0;
  }

  // Goes back from the softmax's input to the first product. The first value must have `uses` uses,
  // all others one. Steps are found in reverse order.
  bool walk_scores(int v, size_t uses) {
    if (steps_left_ == 0) return false;
    --steps_left_;
    if (!is_interior(v) || graph_.values()[v].uses.size() != uses || !graph_.is_float(v)) {
      return false;
    }
    const int n = graph_.def(v);
    if (!graph_.deferrable(n)) return false;
    if (is(n, "bmm.out")) {
      first_ = n;
      std::reverse(steps_[0].begin(), steps_[0].end());
      std::reverse(steps_[1].begin(), steps_[1].end());
      return true;
    }
    if (graph_.is_cast(n)) return walk_scores(graph_.arg_id(n, 0), 1);
    if (const auto step = graph_.step(n, v)) {
      if (!step->keeps_order() && step->kind != Step::Kind::Expand) return false;
      steps_[has_tensor_mask_ ? 0 : 1].push_back(*step);
      return walk_scores(graph_.arg_id(n, 0), 1);
    }
    int scaled = -1;
    if (const auto factor = scale_of(n, scaled)) {
      scale_ *= *factor;
      scales_mask_ |= !has_mask_;
      return walk_scores(scaled, 1);
    }
    return walk_mask(n);
  }

  // The number by which node n multiplies the tensor `scaled`; nothing if n is no such node.
  std::optional<double> scale_of(int n, int& scaled) const {
    scaled = graph_.n_args(n) > 1 ? graph_.arg_id(n, 0) : -1;
    if (is(n, "mul.Scalar_out")) return graph_.constant_number(graph_.arg(n, 1));
    std::optional<double> number;
    if (is(n, "div.Scalar_out") || is(n, "div.out")) {
      number = graph_.constant_element(graph_.arg_id(n, 1));
      if (number.has_value()) number = 1 / *number;
    } else if (is(n, "mul.out")) {
      number = graph_.constant_element(graph_.arg_id(n, 1));
      if (!number.has_value()) {
        number = graph_.constant_element(graph_.arg_id(n, 0));
        scaled = graph_.arg_id(n, 1);
      }
    }
    // Broadcasting to the other operand must not change the rank of the result.
    if (number.has_value() && graph_.tensor(scaled).dim() != graph_.tensor(graph_.out(n)).dim()) {
      return std::nullopt;
    }
    return number;
  }

  bool walk_mask(int n) {
    if (is(n, "add.out") && graph_.constant_number(graph_.arg(n, 2)) == 1.0) {
      return try_masked(n, 0, 1, true, true) || try_masked(n, 1, 0, true, true);
    }
    if (is(n, "where.self_out")) {
      return (hides(graph_.arg_id(n, 2)) && try_masked(n, 1, 0, false, true)) ||
             (hides(graph_.arg_id(n, 1)) && try_masked(n, 2, 0, false, false));
    }
    if (is(n, "masked_fill.Scalar_out") &&
        graph_.constant_number(graph_.arg(n, 2)) == -std::numeric_limits<double>::infinity()) {
      return try_masked(n, 0, 1, false, false);
    }
    return false;
  }
  bool hides(int v) const {
    const int n = graph_.def(v);
    const auto number = is(n, "full.out") || is(n, "full_like.out")
                            ? graph_.constant_number(graph_.arg(n, 1))
                            : graph_.constant_element(v);
    return number == -std::numeric_limits<double>::infinity();
  }

  // Tries to take node n as one that masks the scores. `scores` and `mask` are numbers of its
  // arguments. The mask is added, or it is a condition that is true where keys are visible, or
  // where they are hidden.
  bool try_masked(int n, size_t scores, size_t mask, bool added, bool visible) {
    const Match before = *this;
    has_mask_ = true;
    if (take_mask(graph_.arg_id(n, mask), added, visible) &&
        graph_.tensor(graph_.arg_id(n, scores)).dim() == graph_.tensor(graph_.out(n)).dim() &&
        walk_scores(graph_.arg_id(n, scores), 1)) {
      return true;
    }
    restore(before);
    return false;
  }
  void restore(const Match& before) {
    steps_[0] = before.steps_[0];
    steps_[1] = before.steps_[1];
    scale_ = before.scale_;
    scales_mask_ = before.scales_mask_;
    has_mask_ = before.has_mask_;
    has_tensor_mask_ = before.has_tensor_mask_;
    mask_ = before.mask_;
    mask_kind_ = before.mask_kind_;
    causal_mask_ = before.causal_mask_;
  }

  bool take_mask(int v, bool added, bool visible) {
    const auto causal_mask = added ? causal_masks_.added(v, block_, arena_)
                                   : causal_masks_.of(v, visible, block_, arena_);
    if (causal_mask.has_value() && !causal_mask_.has_value() && scale_ > 0) {
      causal_mask_ = causal_mask;
      causal_mask_value_ = v;
      return true;
    }
    // A factor between mask and softmax would scale the mask as well.
    if (has_tensor_mask_ || !graph_.stable(v) || (added && scales_mask_)) return false;
    const Tensor& mask = graph_.tensor(v);
    if (!added) {
      if (!visible || mask.scalar_type() != ScalarType::Bool) return false;
      mask_kind_ = Attention::Mask::Bool;
    } else if (graph_.is_float(v)) {
      const cpu::Type type = engine_type(mask);
      mask_kind_ = type == cpu::Type::F32   ? Attention::Mask::F32
                   : type == cpu::Type::F16 ? Attention::Mask::F16
                                            : Attention::Mask::BF16;
    } else {
      return false;
    }
    has_tensor_mask_ = true;
    mask_ = graph_.strip(v, block_);
    return true;
  }

  bool walk_to_second_product(int v) {
    for (;;) {
      const int n = graph_.only_use(v);
      if (n < 0 || !is_interior(v) || graph_.nodes()[n].block != block_ || !graph_.deferrable(n) ||
          after_.size() == Graph::kMostSteps) {
        return false;
      }
      if (is(n, "bmm.out")) {
        second_ = n;
        return graph_.arg_id(n, 0) == v;
      }
      const auto step = graph_.step(n, graph_.out(n));
      if (step.has_value() && (step->keeps_order() || step->kind == Step::Kind::Expand)) {
        after_.push_back(*step);
      } else if (!graph_.is_cast(n)) {
        return false;
      }
      v = graph_.out(n);
    }
  }

  // Takes the views behind the second product, up to a tensor with memory of its own.
  void walk_out() {
    last_ = second_;
    size_t kept = 0;
    for (int v = graph_.out(second_); is_interior(v) && out_steps_.size() < Graph::kMostSteps;) {
      const int n = graph_.only_use(v);
      if (n < 0 || graph_.nodes()[n].block != block_ || !graph_.deferrable(n)) break;
      const auto step = graph_.step(n, graph_.out(n));
      if (!step.has_value() || !step->moves_all()) break;
      out_steps_.push_back(*step);
      v = graph_.out(n);
      if (!graph_.is_view(n)) {
        last_ = n;
        kept = out_steps_.size();
      }
    }
    out_steps_.resize(kept);
  }

  // Whether node n converts a value from half to single precision.
  bool is_widened(int n) const {
    return graph_.is_cast(n) && graph_.tensor(graph_.out(n)).scalar_type() == ScalarType::Float;
  }

  // The chain that ends at `v`, as long as possible. If `scales`, it passes multiplications by
  // numbers, which are moved to scale_. If `widened`, it passes conversions from half to single
  // precision.
  Graph::Chain strip_scaled(int v, bool scales, bool widened) {
    Graph::Chain chain = graph_.strip(v, block_);
    while (chain.steps.size() < Graph::kMostSteps) {
      const int n = graph_.def(chain.base);
      int scaled = -1;
      if (!is_interior(chain.base) || !graph_.deferrable(n)) return chain;
      std::optional<double> factor;
      if (widened && is_widened(n)) {
        factor = 1;
        scaled = graph_.arg_id(n, 0);
      } else if (scales) {
        factor = scale_of(n, scaled);
      }
      if (!factor.has_value() || !graph_.is_float(scaled) || !graph_.stable(scaled)) return chain;
      scale_ *= *factor;
      Graph::Chain deeper = graph_.strip(scaled, block_);
      deeper.steps.insert(deeper.steps.end(), chain.steps.begin(), chain.steps.end());
      chain = std::move(deeper);
    }
    return chain;
  }

  // The type of an operand before its conversion to single precision, if it has one.
  ScalarType kept_type(int operand, bool scales) {
    const double scale = scale_;
    const Graph::Chain chain = strip_scaled(operand, scales, true);
    scale_ = scale;
    return graph_.tensor(chain.base).scalar_type();
  }

  // Sets the masks of the call and its name, and adds the masks' values to `inputs`.
  void add_masks(AttentionCall& call, std::vector<int>& inputs) {
    std::string name = "attention";
    if (causal_mask_.has_value()) {
      call.causal = true;
      call.causal_mask = *causal_mask_;
      name += "+causal";
      if (causal_mask_->has_shape) {
        add_inputs(graph_, graph_.strip(causal_mask_value_, block_), inputs);
      } else {
        for (const EValue* number : {causal_mask_->rows, causal_mask_->cols, causal_mask_->first}) {
          if (number != nullptr) inputs.push_back(graph_.id(number));
        }
      }
    }
    if (has_tensor_mask_) {
      call.mask = arena_.operand(graph_, mask_);
      call.mask_kind = mask_kind_;
      add_inputs(graph_, mask_, inputs);
      name += "+mask";
    }
    call.name = arena_.copy(name);
  }

  void emit(bool safe) {
    const int q = graph_.arg_id(first_, 0), k = graph_.arg_id(first_, 1);
    const int v = graph_.arg_id(second_, 1);
    const int out = graph_.out(last_);
    const auto type = graph_.tensor(out).scalar_type();
    for (int operand : {q, k, v, out}) {
      if (!graph_.is_float(operand) || graph_.tensor(operand).scalar_type() != type) return;
    }
    for (int operand : {q, k, v}) {
      if (!graph_.stable(operand)) return;
    }
    const bool widened = kept_type(k, true) == kept_type(v, false);
    const Graph::Chain chains[] = {strip_scaled(q, true, false), strip_scaled(k, true, widened),
                                   strip_scaled(v, false, widened)};
    auto* const call = arena_.make<AttentionCall>();
    if (call == nullptr) return;
    std::vector<int> inputs;
    for (const auto& chain : chains) add_inputs(graph_, chain, inputs);
    for (const auto* steps : {&steps_[0], &steps_[1], &after_, &out_steps_}) {
      add_numbers(graph_, *steps, inputs);
    }
    call->q = arena_.operand(graph_, chains[0]);
    call->k = arena_.operand(graph_, chains[1]);
    call->v = arena_.operand(graph_, chains[2]);
    call->scale = static_cast<float>(scale_);
    // Without a mask tensor, it does not matter which steps come before the mask.
    call->before_mask = arena_.steps(steps_[0]);
    call->before_softmax = arena_.steps(steps_[1]);
    call->after_softmax = arena_.steps(after_);
    call->out_steps = arena_.steps(out_steps_);
    call->safe = safe;
    add_masks(*call, inputs);
    call->run = run_attention;
    call->out = graph_.values()[out].value;
    if (arena_.ok()) graph_.replace(last_, call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  CausalMasks& causal_masks_;
  const int softmax_;
  const int block_;
  int first_ = -1, second_ = -1, last_ = -1;
  double scale_ = 1;
  // The steps before and behind the tensor mask; if there is none, all are behind.
  std::vector<Step> steps_[2];
  std::vector<Step> after_, out_steps_;
  bool has_mask_ = false, has_tensor_mask_ = false, scales_mask_ = false;
  // A limit on the number of values visited between the softmax and the first product.
  size_t steps_left_ = 4 * Graph::kMostSteps;
  Graph::Chain mask_;
  Attention::Mask mask_kind_ = Attention::Mask::None;
  std::optional<CausalMask> causal_mask_;
  int causal_mask_value_ = -1;
};

}  // namespace

void fuse_attention(Graph& graph, Arena& arena) {
  CausalMasks causal_masks(graph);
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (graph.is(n, "_softmax.out") && graph.nodes()[n].live && graph.deferrable(n)) {
      Match(graph, arena, causal_masks, n).run();
    }
  }
}

}  // namespace executorch::optimized
