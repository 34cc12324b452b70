#include <executorch/cpu/threadpool.h>
#include <executorch/extension/llm/custom_ops/op_sdpa.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/index_value.h>

#include <algorithm>
#include <cstring>

namespace torch::executor::native {

using namespace internal;
using executorch::aten::ScalarType;
using executorch::cpu::ThreadScratch;

namespace {

constexpr const char* kOp = "gated_delta_rule.out";

/// A tensor and the ranks that it may have. A program may give one tensor for several arguments.
struct Ranked {
  const Tensor* tensor;
  int64_t rank, other_rank;
};

bool check(KernelRuntimeContext& ctx, const Tensor& query, const Tensor& key, const Tensor& value,
           const Tensor& decay, const Tensor& beta, const Tensor& state, const Tensor& out,
           const Tensor& final_state) {
  for (const Tensor* t : {&query, &key, &value, &decay, &beta, &state, &out, &final_state}) {
    ET_REQUIRE(ctx, t->scalar_type() == ScalarType::Float, InvalidArgument, false,
               "%s: tensors of Float were expected; found %s", kOp,
               executorch::runtime::toString(t->scalar_type()));
  }
  for (const auto& [t, rank, other_rank] :
       {Ranked{&query, 4, 4}, Ranked{&key, 4, 4}, Ranked{&value, 4, 4}, Ranked{&decay, 3, 4},
        Ranked{&beta, 3, 3}, Ranked{&state, 4, 4}}) {
    ET_REQUIRE(ctx, (t->dim() == rank || t->dim() == other_rank) && is_contiguous(*t),
               InvalidArgument, false,
               "%s: contiguous tensors of 4 dimensions, decay of 3 or 4 and beta of 3, were "
               "expected; found %s",
               kOp, ShapeText(*t).c_str());
  }
  bool fits = query.size(0) == key.size(0) && query.size(2) == key.size(2) &&
              query.size(3) == key.size(3) && state.size(2) == key.size(3) &&
              state.size(3) == value.size(3) && (decay.dim() == 3 || decay.size(3) == key.size(3));
  for (int d = 0; d < 3; ++d) {
    fits = fits && value.size(d) == key.size(d) && beta.size(d) == key.size(d) &&
           decay.size(d) == key.size(d) && (d == 2 || state.size(d) == key.size(d));
  }
  const int64_t heads = query.size(1), state_heads = key.size(1);
  ET_REQUIRE(ctx, fits && (state_heads == 0 ? heads == 0 : heads % state_heads == 0),
             InvalidArgument, false,
             "%s: queries %s do not fit keys %s, values %s, decay %s, beta %s and state %s", kOp,
             ShapeText(query).c_str(), ShapeText(key).c_str(), ShapeText(value).c_str(),
             ShapeText(decay).c_str(), ShapeText(beta).c_str(), ShapeText(state).c_str());
  return true;
}

/// One head of the state, dk rows, and the `n_queries` heads of queries that read it: [tokens, dk]
/// and [tokens, dv] rows.
struct Head {
  const float *q, *k, *v, *decay, *beta;
  float *state, *out;
  int64_t n_queries, tokens, dk, dv;
  bool by_channel;  // decay [tokens, dk], else [tokens]

  void run(float* delta) const {
    for (int64_t t = 0; t < tokens; ++t) {
      predict(t, delta);
      const float* const value = v + t * dv;
      for (int64_t j = 0; j < dv; ++j) delta[j] = (value[j] - delta[j]) * beta[t];
      correct_and_read(t, delta);
    }
  }

  /// S = decay_t S; predicted = S^T k_t
  void predict(int64_t t, float* predicted) const {
    std::fill(predicted, predicted + dv, 0.0f);
    for (int64_t i = 0; i < dk; ++i) {
      float* const row = state + i * dv;
      const float forget = by_channel ? decay[t * dk + i] : decay[t], key = k[t * dk + i];
      for (int64_t j = 0; j < dv; ++j) {
        row[j] *= forget;
        predicted[j] += row[j] * key;
      }
    }
  }

  /// S += k_t delta^T; out_t = S^T q_t for each head of queries
  void correct_and_read(int64_t t, const float* delta) const {
    for (int64_t n = 0; n < n_queries; ++n) {
      float* const result = out + (n * tokens + t) * dv;
      std::fill(result, result + dv, 0.0f);
    }
    for (int64_t i = 0; i < dk; ++i) {
      float* const row = state + i * dv;
      const float key = k[t * dk + i];
      for (int64_t j = 0; j < dv; ++j) row[j] += key * delta[j];
      for (int64_t n = 0; n < n_queries; ++n) {
        const float query = q[(n * tokens + t) * dk + i];
        float* const result = out + (n * tokens + t) * dv;
        for (int64_t j = 0; j < dv; ++j) result[j] += row[j] * query;
      }
    }
  }
};

Shape result_shape(const Tensor& query, const Tensor& value) {
  Shape shape(query);
  shape.set(3, value.size(3));
  return shape;
}

}  // namespace

std::tuple<Tensor&, Tensor&> gated_delta_rule_out(RuntimeContext& ctx, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor& decay, const Tensor& beta,
                                                  const Tensor& initial_state, Tensor& out,
                                                  Tensor& final_state_out) {
  const std::tuple<Tensor&, Tensor&> result(out, final_state_out);
  if (!check(ctx, query, key, value, decay, beta, initial_state, out, final_state_out) ||
      !resize_out(ctx, kOp, out, result_shape(query, value)) ||
      !resize_out(ctx, kOp, final_state_out, initial_state.sizes()) ||
      !require_apart(ctx, kOp, initial_state, final_state_out)) {
    return result;
  }
  ET_REQUIRE(ctx, is_contiguous(out) && is_contiguous(final_state_out), InvalidArgument, result,
             "%s: contiguous results were expected", kOp);
  if (initial_state.numel() > 0) {
    std::memcpy(final_state_out.mutable_data_ptr(), initial_state.const_data_ptr(),
                initial_state.nbytes());
  }
  if (out.numel() == 0 && final_state_out.numel() == 0) return result;
  const int64_t heads = key.size(0) * key.size(1), tokens = key.size(2), dk = key.size(3),
                dv = value.size(3), n_queries = key.size(1) > 0 ? query.size(1) / key.size(1) : 0;
  const bool by_channel = decay.dim() == 4;
  EngineScratch scratch(ctx);
  executorch::cpu::Scratch& memory = scratch;
  const executorch::cpu::Scratch::Frame frame(memory);
  memory.add_products(Size(heads) * tokens * dk * dv * (Size(n_queries) + 3));
  const ThreadScratch<float> deltas(memory, dv);
  if (!require_scratch(ctx, kOp, static_cast<bool>(deltas))) return result;
  const float *q = query.const_data_ptr<float>(), *k = key.const_data_ptr<float>(),
              *v = value.const_data_ptr<float>(), *d = decay.const_data_ptr<float>(),
              *b = beta.const_data_ptr<float>();
  float *state = final_state_out.mutable_data_ptr<float>(), *to = out.mutable_data_ptr<float>();
  deltas.parallel_for(heads, 1, [&](int64_t begin, int64_t end, float* delta) {
    for (int64_t h = begin; h < end; ++h) {
      const int64_t row = h * tokens, queries = row * n_queries;
      Head{q + queries * dk,
           k + row * dk,
           v + row * dv,
           d + row * (by_channel ? dk : 1),
           b + row,
           state + h * dk * dv,
           to + queries * dv,
           n_queries,
           tokens,
           dk,
           dv,
           by_channel}
          .run(delta);
    }
  });
  return result;
}

}  // namespace torch::executor::native
