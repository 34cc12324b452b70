// Attention over keys and values of 8 bits: the rows of one head become floats next to where they
// are read, in scratch memory that stays in the cache, so that main memory is read once and in
// bytes.
#include <executorch/extension/llm/custom_ops/op_sdpa.h>
#include <executorch/extension/llm/custom_ops/sdpa_call.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/engine.h>

#include <cinttypes>

namespace torch::executor::native {

using namespace internal;
using executorch::aten::ScalarType;
using executorch::cpu::Attention;
using executorch::cpu::AttentionRows;
using executorch::cpu::LoopScratch;
using executorch::cpu::Scratch;
using executorch::runtime::toString;

namespace {

/// Rows of `dim` integers with a scale and a zero point each, or of floats.
struct Rows {
  ScalarType type;
  AttentionRows at;
  const float* scales = nullptr;
  const int8_t* zero_points = nullptr;
  int64_t dim;

  /// Row i is row `first` + i of head h in batch b.
  void read(int64_t b, int64_t h, int64_t first, int64_t n, float* to) const {
    const int64_t begin = b * at.batch_stride + h * at.head_stride + first * at.row_stride;
    for (int64_t i = 0; i < n; ++i, to += dim) {
      const int64_t from = begin + i * at.row_stride;
      if (type != ScalarType::Char) {
        const auto size = executorch::runtime::elementSize(type);
        load(static_cast<const char*>(at.data) + static_cast<size_t>(from) * size, type, 1, dim,
             to);
        continue;
      }
      const int8_t* const row = static_cast<const int8_t*>(at.data) + from;
      // There are parameters for each row, in the order of rows.
      const float scale = scales[from / dim];
      const int zero = zero_points[from / dim];
      for (int64_t d = 0; d < dim; ++d) to[d] = static_cast<float>(row[d] - zero) * scale;
    }
  }
};

bool require_parameters(KernelRuntimeContext& ctx, const char* name, const Tensor& t,
                        const optional<Tensor>& scales, const optional<Tensor>& zero_points) {
  constexpr const char* kOp = "custom_quantized_sdpa.out";
  ET_REQUIRE(ctx, scales.has_value() && zero_points.has_value(), InvalidArgument, false,
             "%s: %s of Char need scales and zero points", kOp, name);
  for (const Tensor* p : {&*scales, &*zero_points}) {
    bool fits = p->dim() == 4 && p->size(3) == 1 && is_contiguous(*p);
    for (int d = 0; fits && d < 3; ++d) fits = p->size(d) == t.size(d);
    ET_REQUIRE(ctx, fits, InvalidArgument, false,
               "%s: a parameter for each row of %s of shape %s was expected; found %s", kOp, name,
               ShapeText(t).c_str(), ShapeText(*p).c_str());
  }
  ET_REQUIRE(
      ctx,
      scales->scalar_type() == ScalarType::Float && zero_points->scalar_type() == ScalarType::Char,
      InvalidArgument, false,
      "%s: scales of Float and zero points of Char were expected for %s; found %s and %s", kOp,
      name, toString(scales->scalar_type()), toString(zero_points->scalar_type()));
  return true;
}

/// All heads of queries that one head of keys and values serves.
struct Group {
  const SdpaCall& call;
  const Rows& q;
  const Rows& k;
  const Rows& v;
  Tensor& out;

  int64_t size() const { return call.heads() / call.kv_heads(); }

  bool run(int64_t b, int64_t kv_head, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    const int64_t keys = call.keys(), tokens = call.tokens(), dim = call.dim(), heads = size();
    float* const key_rows = scratch.array<float>(Size(keys) * dim);
    float* const value_rows = scratch.array<float>(Size(keys) * dim);
    float* const query_rows = scratch.array<float>(Size(heads) * tokens * dim);
    float* const result = scratch.array<float>(Size(heads) * tokens * dim);
    if (key_rows == nullptr || value_rows == nullptr || query_rows == nullptr ||
        result == nullptr) {
      return false;
    }
    executorch::cpu::parallel_for(keys, 64, [&](int64_t begin, int64_t end) {
      k.read(b, kv_head, begin, end - begin, key_rows + begin * dim);
      v.read(b, kv_head, begin, end - begin, value_rows + begin * dim);
    });
    for (int64_t h = 0; h < heads; ++h) {
      q.read(b, kv_head * heads + h, 0, tokens, query_rows + h * tokens * dim);
    }
    Attention run = call.attention(executorch::cpu::Type::F32);
    run.batch = run.kv_heads = 1;
    run.heads = heads;
    run.q = {query_rows, 0, tokens * dim, dim};
    run.k = {key_rows, 0, 0, dim};
    run.v = {value_rows, 0, 0, dim};
    run.out = result;
    run.out_head_stride = tokens * dim;
    run.out_row_stride = dim;
    if (!run.run(scratch)) return false;
    write(b, kv_head * heads, result);
    return true;
  }

  void write(int64_t b, int64_t first_head, const float* result) const {
    const AttentionRows at = call.rows(out);
    const int64_t dim = call.dim();
    const auto element = static_cast<size_t>(out.element_size());
    char* const data = static_cast<char*>(out.mutable_data_ptr());
    for (int64_t h = 0; h < size(); ++h) {
      for (int64_t t = 0; t < call.tokens(); ++t, result += dim) {
        const int64_t to =
            b * at.batch_stride + (first_head + h) * at.head_stride + t * at.row_stride;
        store(result, dim, data + static_cast<size_t>(to) * element, out.scalar_type(), 1);
      }
    }
  }
};

bool run_groups(const Group& group, Scratch& scratch) {
  const int64_t kv_heads = group.call.kv_heads(), pairs = group.call.batch() * kv_heads;
  const auto run = [&](int64_t begin, int64_t end, Scratch& own) {
    for (int64_t i = begin; i < end; ++i) {
      if (!group.run(i / kv_heads, i % kv_heads, own)) return false;
    }
    return true;
  };
  // Few heads are divided inside.
  if (static_cast<size_t>(pairs) < executorch::cpu::loop_threads()) return run(0, pairs, scratch);
  LoopScratch threads(scratch);
  return threads.parallel_for(pairs, 1, run);
}

template <class T>
const T* data_of(const Tensor& t, const optional<Tensor>& parameters) {
  return t.scalar_type() == ScalarType::Char ? parameters->const_data_ptr<T>() : nullptr;
}

}  // namespace

Tensor& custom_quantized_sdpa_out(
    RuntimeContext& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const int64_t start_pos,
    const optional<Tensor>& attn_mask, const double, const bool is_causal,
    const optional<double>& scale, const optional<Tensor>& q_zero_points,
    const optional<Tensor>& q_scales, const optional<Tensor>& k_zero_points,
    const optional<Tensor>& k_scales, const optional<Tensor>& v_zero_points,
    const optional<Tensor>& v_scales, const bool is_seq_at_dim_2, Tensor& output) {
  constexpr const char* kOp = "custom_quantized_sdpa.out";
  const SdpaCall call = {kOp,
                         q,
                         k,
                         v,
                         attn_mask.has_value() ? &*attn_mask : nullptr,
                         start_pos,
                         is_causal,
                         scale,
                         is_seq_at_dim_2,
                         false};
  if (!call.check(ctx)) return output;
  const bool integers = q.scalar_type() == ScalarType::Char;
  ET_REQUIRE(ctx,
             (integers || engine_type(q.scalar_type()).has_value()) &&
                 k.scalar_type() == ScalarType::Char && v.scalar_type() == ScalarType::Char &&
                 engine_type(output.scalar_type()).has_value(),
             InvalidArgument, output,
             "%s: keys and values of Char and an out of Float, Half or BFloat16 were expected for "
             "queries of Char or such a type; found %s, %s, %s and %s",
             kOp, toString(k.scalar_type()), toString(v.scalar_type()),
             toString(output.scalar_type()), toString(q.scalar_type()));
  if (!require_parameters(ctx, "keys", k, k_scales, k_zero_points) ||
      !require_parameters(ctx, "values", v, v_scales, v_zero_points) ||
      (integers && !require_parameters(ctx, "queries", q, q_scales, q_zero_points))) {
    return output;
  }
  // The computation is in Float, and so is its mask.
  ET_REQUIRE(ctx,
             call.mask == nullptr || call.mask->scalar_type() == ScalarType::Float ||
                 call.mask->scalar_type() == ScalarType::Bool,
             InvalidArgument, output, "%s: a mask of Float or Bool was expected; found %s", kOp,
             toString(call.mask->scalar_type()));
  if (!resize_out(ctx, kOp, output, q.sizes())) return output;
  ET_REQUIRE(ctx, is_contiguous(output), InvalidArgument, output,
             "%s: a contiguous out was expected", kOp);
  if (output.numel() == 0) return output;
  const auto rows = [&](const Tensor& t, const optional<Tensor>& scales,
                        const optional<Tensor>& zero_points) {
    return Rows{t.scalar_type(), call.rows(t), data_of<float>(t, scales),
                data_of<int8_t>(t, zero_points), call.dim()};
  };
  const Rows q_rows = rows(q, q_scales, q_zero_points), k_rows = rows(k, k_scales, k_zero_points),
             v_rows = rows(v, v_scales, v_zero_points);
  EngineScratch scratch(ctx);
  (void)require_scratch(ctx, kOp, run_groups({call, q_rows, k_rows, v_rows, output}, scratch));
  return output;
}

}  // namespace torch::executor::native
