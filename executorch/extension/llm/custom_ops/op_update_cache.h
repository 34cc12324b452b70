/// Writing new keys and values into a cache.
///
///   value  [batch, tokens, heads, dim]
///   cache  [batch, capacity, heads, dim] of the same type; contiguous, both
///   out    one element that says nothing: the operator must return something
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <cstdint>

namespace torch::executor::native {

using executorch::aten::Tensor;

/// cache[:, start_pos + t] = value[:, t]. What does not fit from `start_pos` on is an error, and
/// nothing is written then.
Tensor& update_cache_out(RuntimeContext& ctx, const Tensor& value, Tensor& cache,
                         const int64_t start_pos, Tensor& output);

/// cache[b, indices[b, t]] = value[b, t] with indices [batch, tokens] of Long, each in
/// [0, capacity); of equal ones the last holds. `start_pos` is not read.
Tensor& update_cache_with_indices_out(RuntimeContext& ctx, const Tensor& value, Tensor& cache,
                                      const int64_t start_pos, const Tensor& indices,
                                      Tensor& output);

}  // namespace torch::executor::native
