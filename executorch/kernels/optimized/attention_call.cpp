#include <executorch/kernels/optimized/attention_call.h>
#include <executorch/kernels/optimized/loops.h>

namespace executorch::optimized {
namespace {

using cpu::Attention;

enum Who { kQ, kK, kV, kOut, kMask, kCount };

using HeadLoops = Loops<kCount>;

// Assigns the engine's heads and batch to the innermost loops. Returns the number of loops they
// take.
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

// Runs the loops that the engine does not have, recursively; the outermost loop is the last one.
bool run_loops(const HeadLoops& loops, int level, int taken, Attention& run, const Pointers& at,
               const int64_t (&bytes)[kCount], cpu::Scratch& scratch) {
  if (level == taken) {
    run.q.data = at.q;
    run.k.data = at.k;
    run.v.data = at.v;
    run.out = at.out;
    run.mask = at.mask;
    return run.run(scratch);
  }
  const auto& loop = loops.loops[level - 1];
  for (int64_t i = 0; i < loop.size; ++i) {
    const auto step = [&](Who who) { return i * loop.stride[who] * bytes[who]; };
    if (!run_loops(loops, level - 1, taken, run,
                   {at.q + step(kQ), at.k + step(kK), at.v + step(kV), at.out + step(kOut),
                    at.mask == nullptr ? nullptr : at.mask + step(kMask)},
                   bytes, scratch)) {
      return false;
    }
  }
  return true;
}

bool is_unit(const View& view, int dim) {
  int64_t stride = 0;
  return view.stride(dim, stride) && (stride == 1 || view.size(dim) == 1);
}

bool find_views(const AttentionCall& call, View (&views)[kCount], int64_t& causal_offset) {
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
  if (call.causal) {
    const auto offset = call.causal_mask.offset(q.size(1), k.size(2));
    if (!offset.has_value()) return false;
    causal_offset = *offset;
  }
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

}  // namespace

bool run_attention(const FusedCall& base, KernelRuntimeContext& ctx) {
  const auto& call = static_cast<const AttentionCall&>(base);
  View views[kCount];
  HeadLoops loops;
  Attention run;
  if (!find_views(call, views, run.causal_offset) || !loops.add(views, 0)) return false;
  int64_t head[kCount] = {}, batch[kCount] = {};
  const int taken = assign_heads(loops, run, head, batch);
  const Tensor& out = call.out->toTensor();
  run.type = engine_type(out);
  run.kept = engine_type(call.k.tensor());
  run.queries = views[kQ].size(1);
  run.keys = views[kK].size(2);
  run.dim = views[kQ].size(2);
  run.value_dim = views[kV].size(2);
  run.scale = call.scale;
  run.causal = call.causal;
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
  torch::executor::native::internal::EngineScratch scratch(ctx);
  const int64_t element = out.element_size(), kept = call.k.tensor().element_size();
  const int64_t bytes[kCount] = {element, kept, kept, element,
                                 masked ? call.mask.tensor().element_size() : 0};
  return run_loops(loops, loops.n, taken, run, at, bytes, scratch);
}

}  // namespace executorch::optimized
