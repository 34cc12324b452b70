/// What the operators that write caches share.
#pragma once

#include <executorch/kernels/portable/internal/shape.h>

#include <cstdint>

namespace torch::executor::native::internal {

/// Whether `value` [batch, tokens, heads, dim] may be written into `cache` at some position: both
/// contiguous, of one type, and equal but for the tokens. Else false and the context failed.
[[nodiscard]] bool require_cache(KernelRuntimeContext& ctx, const char* op, const Tensor& value,
                                 const Tensor& cache);

/// Whether `tokens` positions from `start_pos` on lie within [0, capacity).
[[nodiscard]] bool require_positions(KernelRuntimeContext& ctx, const char* op, int64_t start_pos,
                                     int64_t tokens, int64_t capacity);

/// cache[:, start_pos + t] = value[:, t], of what was checked by the two above.
void copy_into_cache(const Tensor& value, Tensor& cache, int64_t start_pos);

}  // namespace torch::executor::native::internal
