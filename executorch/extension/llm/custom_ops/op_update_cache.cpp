#include <executorch/extension/llm/custom_ops/cache_update.h>
#include <executorch/extension/llm/custom_ops/op_update_cache.h>
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/kernels/portable/internal/index_value.h>

#include <cinttypes>
#include <cstring>

namespace torch::executor::native {

using namespace internal;
using executorch::aten::ScalarType;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace internal {

bool require_cache(KernelRuntimeContext& ctx, const char* op, const Tensor& value,
                   const Tensor& cache) {
  ET_REQUIRE(
      ctx,
      value.dim() == 4 && cache.dim() == 4 && value.size(0) == cache.size(0) &&
          value.size(2) == cache.size(2) && value.size(3) == cache.size(3),
      InvalidArgument, false,
      "%s: values [batch, tokens, heads, dim] and a cache [batch, capacity, heads, dim] were "
      "expected; found %s and %s",
      op, ShapeText(value).c_str(), ShapeText(cache).c_str());
  ET_REQUIRE(ctx, value.scalar_type() == cache.scalar_type(), InvalidArgument, false,
             "%s: values of %s cannot be written into a cache of %s", op,
             toString(value.scalar_type()), toString(cache.scalar_type()));
  ET_REQUIRE(ctx, is_contiguous(value) && is_contiguous(cache), InvalidArgument, false,
             "%s: contiguous values and a contiguous cache were expected", op);
  return true;
}

bool require_positions(KernelRuntimeContext& ctx, const char* op, int64_t start_pos, int64_t tokens,
                       int64_t capacity) {
  ET_REQUIRE(ctx, start_pos >= 0 && (Size(start_pos) + tokens).within(capacity), InvalidArgument,
             false,
             "%s: %" PRId64 " tokens from position %" PRId64
             " on do not fit into a cache of %" PRId64 " positions",
             op, tokens, start_pos, capacity);
  return true;
}

void copy_into_cache(const Tensor& value, Tensor& cache, int64_t start_pos) {
  if (value.numel() == 0) return;
  const size_t token = static_cast<size_t>(value.size(2) * value.size(3) * value.element_size());
  const size_t row = static_cast<size_t>(value.size(1)) * token;
  const char* from = static_cast<const char*>(value.const_data_ptr());
  char* to = static_cast<char*>(cache.mutable_data_ptr()) + static_cast<size_t>(start_pos) * token;
  // A file may plan both into the same memory.
  for (int64_t b = 0; b < value.size(0); ++b, from += row) {
    std::memmove(to, from, row);
    to += static_cast<size_t>(cache.size(1)) * token;
  }
}

}  // namespace internal

namespace {

// The result is there because an operator returns something; it has the same value in every run.
void clear(KernelRuntimeContext& ctx, const char* op, Tensor& out) {
  constexpr executorch::aten::SizesType kOne[] = {1};
  if (!resize_out(ctx, op, out, ArrayRef<SizesType>(kOne, 1))) return;
  if (out.mutable_data_ptr() != nullptr) std::memset(out.mutable_data_ptr(), 0, out.nbytes());
}

}  // namespace

Tensor& update_cache_out(RuntimeContext& ctx, const Tensor& value, Tensor& cache,
                         const int64_t start_pos, Tensor& output) {
  constexpr const char* kOp = "update_cache.out";
  if (!require_cache(ctx, kOp, value, cache) ||
      !require_positions(ctx, kOp, start_pos, value.size(1), cache.size(1))) {
    return output;
  }
  clear(ctx, kOp, output);
  if (ctx.failure_state() == executorch::runtime::Error::Ok) {
    copy_into_cache(value, cache, start_pos);
  }
  return output;
}

Tensor& update_cache_with_indices_out(RuntimeContext& ctx, const Tensor& value, Tensor& cache,
                                      const int64_t, const Tensor& indices, Tensor& output) {
  constexpr const char* kOp = "update_cache_with_indices.out";
  if (!require_cache(ctx, kOp, value, cache)) return output;
  ET_REQUIRE(
      ctx,
      indices.dim() == 2 && indices.size(0) == value.size(0) && indices.size(1) == value.size(1) &&
          indices.scalar_type() == ScalarType::Long && is_contiguous(indices),
      InvalidArgument, output,
      "%s: contiguous indices [batch, tokens] of Long were expected for values of shape %s; "
      "found %s of %s",
      kOp, ShapeText(value).c_str(), ShapeText(indices).c_str(), toString(indices.scalar_type()));
  if (!require_apart(ctx, kOp, indices, cache) || !require_apart(ctx, kOp, indices, output)) {
    return output;
  }
  const int64_t tokens = value.size(1), capacity = cache.size(1);
  const IndexValues at(indices);
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (at[i] >= 0 && at[i] < capacity) continue;
    fail_index(ctx, kOp, at[i], i, 0, capacity, 1);
    return output;
  }
  clear(ctx, kOp, output);
  if (ctx.failure_state() != executorch::runtime::Error::Ok || value.numel() == 0) return output;
  const size_t token = static_cast<size_t>(value.size(2) * value.size(3) * value.element_size());
  const char* from = static_cast<const char*>(value.const_data_ptr());
  char* const to = static_cast<char*>(cache.mutable_data_ptr());
  for (int64_t i = 0; i < indices.numel(); ++i, from += token) {
    std::memmove(to + static_cast<size_t>(i / tokens * capacity + at[i]) * token, from, token);
  }
  return output;
}

namespace {

constexpr Kernel kUpdateCacheOps[] = {
    ET_OP("llama::update_cache.out", update_cache_out),
    ET_OP("llama::update_cache_with_indices.out", update_cache_with_indices_out),
};

}  // namespace

Span<const Kernel> update_cache_ops() {
  return kUpdateCacheOps;
}

}  // namespace torch::executor::native
