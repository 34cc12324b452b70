/// One call of attention over a cache: its checks, and its operands as the engine takes them.
#pragma once

#include <executorch/cpu/nn/attention.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <cstdint>
#include <optional>

namespace torch::executor::native::internal {

struct SdpaCall {
  const char* op;
  const Tensor& q;
  const Tensor& k;
  const Tensor& v;
  const Tensor* mask;
  int64_t start_pos;
  bool causal;
  std::optional<double> scale;
  /// [batch, heads, tokens, dim] instead of [batch, tokens, heads, dim].
  bool heads_first;
  /// Without a mask, all keys are read and not those up to the last token.
  bool all_keys;

  int heads_dim() const { return heads_first ? 1 : 2; }
  int tokens_dim() const { return heads_first ? 2 : 1; }
  int64_t batch() const { return q.size(0); }
  int64_t heads() const { return q.size(heads_dim()); }
  int64_t kv_heads() const { return k.size(heads_dim()); }
  int64_t tokens() const { return q.size(tokens_dim()); }
  int64_t capacity() const { return k.size(tokens_dim()); }
  int64_t dim() const { return q.size(3); }
  /// How many are read; for a call that was checked.
  int64_t keys() const;

  /// Shapes, positions, mask; types apart from the mask's. False with the context failed.
  [[nodiscard]] bool check(KernelRuntimeContext& ctx) const;
  /// Everything but operands and output, with `type` for those. For a call that was checked, with
  /// elements.
  executorch::cpu::Attention attention(executorch::cpu::Type type) const;
  /// Where the rows of an operand of that layout lie.
  executorch::cpu::AttentionRows rows(const Tensor& t) const;

 private:
  [[nodiscard]] bool check_mask(KernelRuntimeContext& ctx) const;
};

}  // namespace torch::executor::native::internal
