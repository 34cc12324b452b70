#include <executorch/extension/llm/custom_ops/sdpa_call.h>
#include <executorch/kernels/portable/internal/engine.h>

#include <cinttypes>
#include <cmath>

namespace torch::executor::native::internal {

using executorch::cpu::Attention;
using executorch::cpu::AttentionRows;
using executorch::runtime::toString;

int64_t SdpaCall::keys() const {
  if (mask != nullptr) return mask->size(1);
  return all_keys ? capacity() : start_pos + tokens();
}

bool SdpaCall::check(KernelRuntimeContext& ctx) const {
  for (const Tensor* t : {&q, &k, &v}) {
    ET_REQUIRE(ctx, t->dim() == 4 && is_contiguous(*t), InvalidArgument, false,
               "%s: contiguous tensors of 4 dimensions were expected; found %s", op,
               ShapeText(*t).c_str());
  }
  ET_REQUIRE(
      ctx,
      k.size(0) == q.size(0) && k.size(3) == q.size(3) && v.sizes().equals(k.sizes()) &&
          (heads() == 0 || (kv_heads() > 0 && heads() % kv_heads() == 0)),
      InvalidArgument, false,
      "%s: keys %s and values %s do not belong to queries %s: batch and dim must be equal, and "
      "the heads of queries a multiple of theirs",
      op, ShapeText(k).c_str(), ShapeText(v).c_str(), ShapeText(q).c_str());
  ET_REQUIRE(ctx, all_keys || (start_pos >= 0 && (Size(start_pos) + tokens()).within(capacity())),
             InvalidArgument, false,
             "%s: %" PRId64 " tokens from position %" PRId64
             " on do not fit into a cache of %" PRId64 " positions",
             op, tokens(), start_pos, capacity());
  return mask == nullptr || check_mask(ctx);
}

bool SdpaCall::check_mask(KernelRuntimeContext& ctx) const {
  ET_REQUIRE(ctx, all_keys || !causal, InvalidArgument, false,
             "%s: a mask or is_causal was expected, not both", op);
  ET_REQUIRE(ctx,
             mask->dim() == 2 && mask->size(0) == tokens() && mask->size(1) <= capacity() &&
                 is_contiguous(*mask),
             InvalidArgument, false,
             "%s: a contiguous mask [%" PRId64 " tokens, at most %" PRId64
             " keys] was expected; found %s",
             op, tokens(), capacity(), ShapeText(*mask).c_str());
  const ScalarType type = mask->scalar_type();
  ET_REQUIRE(ctx,
             type == ScalarType::Float || type == ScalarType::Bool ||
                 (type == q.scalar_type() && engine_type(type).has_value()),
             InvalidArgument, false,
             "%s: a mask of Float, Bool or the type of the queries was expected; found %s", op,
             toString(type));
  return true;
}

AttentionRows SdpaCall::rows(const Tensor& t) const {
  const int64_t inner = t.size(3), middle = t.size(2) * inner;
  AttentionRows rows;
  rows.data = t.const_data_ptr();
  rows.batch_stride = t.size(1) * middle;
  rows.head_stride = heads_first ? middle : inner;
  rows.row_stride = heads_first ? inner : middle;
  return rows;
}

Attention SdpaCall::attention(executorch::cpu::Type type) const {
  Attention run;
  run.type = type;
  run.batch = batch();
  run.heads = heads();
  run.kv_heads = kv_heads();
  run.queries = tokens();
  run.keys = keys();
  run.dim = run.value_dim = dim();
  run.scale = static_cast<float>(scale.value_or(1.0 / std::sqrt(static_cast<double>(dim()))));
  run.causal = causal;
  run.causal_offset = all_keys ? 0 : start_pos;
  if (mask != nullptr) {
    switch (mask->scalar_type()) {
      case ScalarType::Bool:
        run.mask_kind = Attention::Mask::Bool;
        break;
      case ScalarType::Half:
        run.mask_kind = Attention::Mask::F16;
        break;
      case ScalarType::BFloat16:
        run.mask_kind = Attention::Mask::BF16;
        break;
      default:
        run.mask_kind = Attention::Mask::F32;
    }
    run.mask = mask->const_data_ptr();
    run.mask_row_stride = mask->size(1);
  }
  return run;
}

}  // namespace torch::executor::native::internal
