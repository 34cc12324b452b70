/// Fused attention: softmax(scale * q k^T + mask) v. The matrix of scores is never stored in
/// memory.
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>
#include <optional>

namespace executorch::cpu {

/// The tensor q, k or v, [batch, head, position, dim]. Strides are in elements; that of the last
/// dim is 1.
struct AttentionRows {
  const void* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

/// out[b,h,i,:] = sum_j p[b,h,i,j] v[b,h/g,j,:] with p = softmax over j of
///                (scale * dot(q[b,h,i,:], k[b,h/g,j,:]) + mask[b,h,i,j]),   g = heads / kv_heads
/// Key j is visible to query i where `causal` is false or j <= i + causal_offset. A row that sees
/// no key, or whose masked scores are all -infinity, gives zeros if `safe`, otherwise NaN as
/// softmax in eager PyTorch. No products are computed for blocks of the mask that are -infinity or
/// false everywhere. Sizes >= 0; kv_heads >= 1 divides heads. Any causal_offset.
struct Attention {
  Type type = Type::F32;  // of q, k, v and out
  /// The type of k and v, if it is not `type`; `type` must then be F32.
  std::optional<Type> kept;
  int64_t batch = 1, heads = 1, kv_heads = 1;
  int64_t queries = 0, keys = 0;
  int64_t dim = 0, value_dim = 0;
  AttentionRows q, k, v;
  /// As AttentionRows.
  void* out = nullptr;
  int64_t out_batch_stride = 0, out_head_stride = 0, out_row_stride = 0;
  float scale = 1;
  bool causal = false;
  int64_t causal_offset = 0;
  bool safe = true;
  /// The kind of mask: none, floats (of type `type` or F32) that are added to the scores, or
  /// booleans that are true where the key is visible.
  enum class Mask : uint8_t { None, F32, F16, BF16, Bool } mask_kind = Mask::None;
  const void* mask = nullptr;
  /// Elements; 0 broadcasts.
  int64_t mask_batch_stride = 0, mask_head_stride = 0, mask_row_stride = 0, mask_col_stride = 1;

  /// Computes `out`, which must not overlap an operand. Results do not depend on the number of
  /// threads. Returns false, before anything is written, if memory is refused or a product of sizes
  /// exceeds int64.
  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
