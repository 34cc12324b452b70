#include <executorch/cpu/nn/attention.h>
#include <executorch/kernels/optimized/loops.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/optimized/triangle.h>

#include <cmath>
#include <limits>

namespace executorch::optimized {
namespace {

using aten::ScalarType;
using cpu::Attention;

struct AttentionCall : FusedCall {
  Operand q;  // [b, t, d], b = batch * heads
  Operand k;  // [b, d, s]
  Operand v;  // [b, s, dv]
  float scale = 1;
  // From the first product [b, t, s] to the place of the mask, to the softmax, and from there to
  // the second product.
  Span<const Step> before_mask, before_softmax, after_softmax;
  Operand mask;
  Attention::Mask mask_kind = Attention::Mask::None;
  bool causal = false;
  Triangle triangle;
  bool safe = false;
  // From the second product to out.
  Span<const Step> out_steps;
};

// ---- At run time.

enum Who { kQ, kK, kV, kOut, kMask, kCount };

using HeadLoops = Loops<kCount>;

// Heads and batch from the innermost loops; the number of loops they take.
int assign_heads(const HeadLoops& loops, Attention& run, int64_t (&head)[kCount],
                 int64_t (&batch)[kCount]) {
  int taken = 0;
  if (loops.n > 0) {
    const auto& inner = loops.loops[0];
    run.heads = run.kv_heads = inner.size;
    std::copy(std::begin(inner.stride), std::end(inner.stride), head);
    taken = 1;
    if (inner.stride[kK] == 0 && inner.stride[kV] == 0) {
      run.kv_heads = 1;
      const auto& outer = loops.loops[1];
      if (loops.n > 1 && HeadLoops::continues(inner, outer, kQ) &&
          HeadLoops::continues(inner, outer, kOut) && HeadLoops::continues(inner, outer, kMask)) {
        run.kv_heads = outer.size;
        run.heads = inner.size * outer.size;
        head[kK] = outer.stride[kK];
        head[kV] = outer.stride[kV];
        taken = 2;
      }
    }
  }
  if (taken < loops.n) {
    run.batch = loops.loops[taken].size;
    std::copy(std::begin(loops.loops[taken].stride), std::end(loops.loops[taken].stride), batch);
    ++taken;
  }
  return taken;
}

struct Pointers {
  const char* q;
  const char* k;
  const char* v;
  char* out;
  const char* mask;
};

// The loops that the engine does not have, outermost last.
void run_loops(const HeadLoops& loops, int level, int taken, Attention& run, const Pointers& at,
               int64_t element, int64_t mask_element) {
  if (level == taken) {
    run.q.data = at.q;
    run.k.data = at.k;
    run.v.data = at.v;
    run.out = at.out;
    run.mask = at.mask;
    run.run();
    return;
  }
  const auto& loop = loops.loops[level - 1];
  for (int64_t i = 0; i < loop.size; ++i) {
    run_loops(loops, level - 1, taken, run,
              {at.q + i * loop.stride[kQ] * element, at.k + i * loop.stride[kK] * element,
               at.v + i * loop.stride[kV] * element, at.out + i * loop.stride[kOut] * element,
               at.mask == nullptr ? nullptr : at.mask + i * loop.stride[kMask] * mask_element},
              element, mask_element);
  }
}

bool is_unit(const View& view, int dim) {
  int64_t stride = 0;
  return view.stride(dim, stride) && (stride == 1 || view.size(dim) == 1);
}

bool find_views(const AttentionCall& call, View (&views)[kCount]) {
  View& q = views[kQ] = call.q.view();
  View& k = views[kK] = call.k.view();
  View& v = views[kV] = call.v.view();
  if (q.ndim() != 3 || k.ndim() != 3 || v.ndim() != 3 || q.size(0) != k.size(0) ||
      q.size(0) != v.size(0) || q.size(2) != k.size(1) || k.size(2) != v.size(1)) {
    return false;
  }
  const int64_t scores_sizes[] = {q.size(0), q.size(1), k.size(2)};
  const View scores(scores_sizes, 3);
  View masked = scores;
  if (!apply_steps(call.before_mask, masked)) return false;
  View weights = masked;
  if (!apply_steps(call.before_softmax, weights) || weights.ndim() < 1 ||
      weights.size(weights.ndim() - 1) != scores_sizes[2] ||
      !apply_steps(call.after_softmax, weights) || !weights.same_sizes(scores)) {
    return false;
  }
  if (call.causal && !call.triangle.fits(q.size(1), k.size(2))) return false;
  if (call.mask_kind != Attention::Mask::None) {
    View& mask = views[kMask] = call.mask.view();
    if (!mask.valid() || !mask.expand_as(masked) || !undo_steps(call.before_mask, scores, mask)) {
      return false;
    }
  } else {
    const int64_t one[] = {1, 1, 1};
    views[kMask] = View(one, 3);
  }
  const int64_t out_sizes[] = {q.size(0), q.size(1), v.size(2)};
  const View product(out_sizes, 3);
  View result = product;
  const Tensor& out = call.out->toTensor();
  if (!apply_steps(call.out_steps, result) || !resize(out, result)) return false;
  views[kOut] = View(out);
  return undo_steps(call.out_steps, product, views[kOut]) && is_unit(views[kOut], 2) &&
         is_unit(q, 2) && is_unit(k, 1) && is_unit(v, 2);
}

bool run_attention(const FusedCall& base, KernelRuntimeContext&) {
  const auto& call = static_cast<const AttentionCall&>(base);
  View views[kCount];
  HeadLoops loops;
  if (!find_views(call, views) || !loops.add(views, 0)) return false;
  Attention run;
  int64_t head[kCount] = {}, batch[kCount] = {};
  const int taken = assign_heads(loops, run, head, batch);
  const Tensor& out = call.out->toTensor();
  run.type = engine_type(out);
  run.queries = views[kQ].size(1);
  run.keys = views[kK].size(2);
  run.dim = views[kQ].size(2);
  run.value_dim = views[kV].size(2);
  run.scale = call.scale;
  run.causal = call.causal;
  run.causal_offset = call.triangle.offset;
  run.safe = call.safe;
  run.mask_kind = call.mask_kind;
  run.q = {nullptr, batch[kQ], head[kQ], 0};
  run.k = {nullptr, batch[kK], head[kK], 0};
  run.v = {nullptr, batch[kV], head[kV], 0};
  run.out_batch_stride = batch[kOut];
  run.out_head_stride = head[kOut];
  run.mask_batch_stride = batch[kMask];
  run.mask_head_stride = head[kMask];
  if (!views[kQ].stride(1, run.q.row_stride) || !views[kK].stride(2, run.k.row_stride) ||
      !views[kV].stride(1, run.v.row_stride) || !views[kOut].stride(1, run.out_row_stride) ||
      !views[kMask].stride(1, run.mask_row_stride) ||
      !views[kMask].stride(2, run.mask_col_stride)) {
    return false;
  }
  const bool masked = call.mask_kind != Attention::Mask::None;
  const Pointers at = {
      static_cast<const char*>(call.q.data(views[kQ])),
      static_cast<const char*>(call.k.data(views[kK])),
      static_cast<const char*>(call.v.data(views[kV])),
      static_cast<char*>(out.mutable_data_ptr()) + views[kOut].offset() * out.element_size(),
      masked ? static_cast<const char*>(call.mask.data(views[kMask])) : nullptr};
  run_loops(loops, loops.n, taken, run, at, out.element_size(),
            masked ? call.mask.tensor().element_size() : 0);
  return true;
}

// ---- When a method is loaded.

class Match {
 public:
  Match(Graph& graph, Arena& arena, int softmax)
      : graph_(graph), arena_(arena), softmax_(softmax), block_(graph.nodes()[softmax].block) {}

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

  // where(not any(not (in == -inf)), 0, weights): rows that see no key give zeros. The node, or -1.
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

  // Back from the softmax's input to the first product; each value has `uses` uses at first, then
  // one. Steps are found in reverse.
  bool walk_scores(int v, size_t uses) {
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
    if (is_cast(n)) return walk_scores(graph_.arg_id(n, 0), 1);
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

  bool is_cast(int n) const {
    return (is(n, "_to_copy.out") || is(n, "_to_dim_order_copy.out")) &&
           graph_.is_float(graph_.arg_id(n, 0)) && graph_.is_float(graph_.out(n));
  }

  // A multiplication by a number, of the tensor `scaled`.
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
    // The other operand must not give the result its shape.
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

  // `scores` and `mask` are argument numbers of n; the mask is added, or a condition that holds
  // where keys are visible (or hidden).
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
    triangle_ = before.triangle_;
  }

  bool take_mask(int v, bool added, bool visible) {
    const auto triangle = added ? triangle_added(graph_, v, block_, arena_)
                                : triangle_of(graph_, v, visible, block_, arena_);
    if (triangle.has_value() && !triangle_.has_value() && scale_ > 0) {
      triangle_ = triangle;
      triangle_value_ = v;
      return true;
    }
    // A factor between mask and softmax would scale the mask too.
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
      if (n < 0 || !is_interior(v) || graph_.nodes()[n].block != block_ || !graph_.deferrable(n)) {
        return false;
      }
      if (is(n, "bmm.out")) {
        second_ = n;
        return graph_.arg_id(n, 0) == v;
      }
      const auto step = graph_.step(n, graph_.out(n));
      if (step.has_value() && (step->keeps_order() || step->kind == Step::Kind::Expand)) {
        after_.push_back(*step);
      } else if (!is_cast(n)) {
        return false;
      }
      v = graph_.out(n);
    }
  }

  // Views behind the second product, as far as a tensor with memory of its own.
  void walk_out() {
    last_ = second_;
    size_t kept = 0;
    for (int v = graph_.out(second_); is_interior(v);) {
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

  // Also through multiplications by numbers.
  Graph::Chain strip_scaled(int v) {
    Graph::Chain chain = graph_.strip(v, block_);
    for (;;) {
      const int n = graph_.def(chain.base);
      int scaled = -1;
      if (!is_interior(chain.base) || !graph_.deferrable(n)) return chain;
      const auto factor = scale_of(n, scaled);
      if (!factor.has_value() || !graph_.is_float(scaled) || !graph_.stable(scaled)) return chain;
      scale_ *= *factor;
      Graph::Chain deeper = graph_.strip(scaled, block_);
      deeper.steps.insert(deeper.steps.end(), chain.steps.begin(), chain.steps.end());
      chain = std::move(deeper);
    }
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
    const Graph::Chain chains[] = {strip_scaled(q), strip_scaled(k), graph_.strip(v, block_)};
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
    // Without a tensor for a mask its place is of no interest.
    call->before_mask = arena_.steps(steps_[0]);
    call->before_softmax = arena_.steps(steps_[1]);
    call->after_softmax = arena_.steps(after_);
    call->out_steps = arena_.steps(out_steps_);
    call->safe = safe;
    std::string name = "attention";
    if (triangle_.has_value()) {
      call->causal = true;
      call->triangle = *triangle_;
      name += "+causal";
      if (triangle_->has_shape) {
        add_inputs(graph_, graph_.strip(triangle_value_, block_), inputs);
      } else {
        inputs.push_back(graph_.id(triangle_->rows));
        inputs.push_back(graph_.id(triangle_->cols));
      }
    }
    if (has_tensor_mask_) {
      call->mask = arena_.operand(graph_, mask_);
      call->mask_kind = mask_kind_;
      add_inputs(graph_, mask_, inputs);
      name += "+mask";
    }
    call->run = run_attention;
    call->name = arena_.copy(name);
    call->out = graph_.values()[out].value;
    if (arena_.ok()) graph_.replace(last_, call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  const int softmax_;
  const int block_;
  int first_ = -1, second_ = -1, last_ = -1;
  double scale_ = 1;
  // Before and behind the tensor mask; all behind if there is none.
  std::vector<Step> steps_[2];
  std::vector<Step> after_, out_steps_;
  bool has_mask_ = false, has_tensor_mask_ = false, scales_mask_ = false;
  Graph::Chain mask_;
  Attention::Mask mask_kind_ = Attention::Mask::None;
  std::optional<Triangle> triangle_;
  int triangle_value_ = -1;
};

}  // namespace

void fuse_attention(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (graph.is(n, "_softmax.out") && graph.nodes()[n].live && graph.deferrable(n)) {
      Match(graph, arena, n).run();
    }
  }
}

}  // namespace executorch::optimized
