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

bool check(KernelRuntimeContext& ctx, const Tensor& query, const Tensor& key, const Tensor& value,
           const Tensor& decay, const Tensor& beta, const Tensor& state, const Tensor& out,
           const Tensor& final_state) {
  for (const Tensor* t : {&query, &key, &value, &decay, &beta, &state, &out, &final_state}) {
    ET_REQUIRE(ctx, t->scalar_type() == ScalarType::Float, InvalidArgument, false,
               "%s: tensors of Float were expected; found %s", kOp,
               executorch::runtime::toString(t->scalar_type()));
  }
  for (const Tensor* t : {&query, &key, &value, &decay, &beta, &state}) {
    ET_REQUIRE(ctx, t->dim() == (t == &beta ? 3 : 4) && is_contiguous(*t), InvalidArgument, false,
               "%s: contiguous tensors of 4 dimensions, beta of 3, were expected; found %s", kOp,
               ShapeText(*t).c_str());
  }
  bool fits = key.sizes().equals(query.sizes()) && decay.sizes().equals(query.sizes()) &&
              state.size(2) == query.size(3) && state.size(3) == value.size(3);
  for (int d = 0; d < 3; ++d) {
    fits = fits && value.size(d) == query.size(d) && beta.size(d) == query.size(d) &&
           (d == 2 || state.size(d) == query.size(d));
  }
  ET_REQUIRE(ctx, fits, InvalidArgument, false,
             "%s: queries %s do not fit keys %s, values %s, decay %s, beta %s and state %s", kOp,
             ShapeText(query).c_str(), ShapeText(key).c_str(), ShapeText(value).c_str(),
             ShapeText(decay).c_str(), ShapeText(beta).c_str(), ShapeText(state).c_str());
  return true;
}

/// One head: [tokens, dk] and [tokens, dv] rows, a state of dk rows.
struct Head {
  const float *q, *k, *v, *decay, *beta;
  float *state, *out;
  int64_t tokens, dk, dv;

  void run(float* delta) const {
    for (int64_t t = 0; t < tokens; ++t) {
      const float *key = k + t * dk, *query = q + t * dk, *forget = decay + t * dk;
      const float* const value = v + t * dv;
      std::fill(delta, delta + dv, 0.0f);
      for (int64_t i = 0; i < dk; ++i) {
        float* const row = state + i * dv;
        for (int64_t j = 0; j < dv; ++j) {
          row[j] *= forget[i];
          delta[j] += row[j] * key[i];
        }
      }
      for (int64_t j = 0; j < dv; ++j) delta[j] = (value[j] - delta[j]) * beta[t];
      float* const result = out + t * dv;
      std::fill(result, result + dv, 0.0f);
      for (int64_t i = 0; i < dk; ++i) {
        float* const row = state + i * dv;
        for (int64_t j = 0; j < dv; ++j) {
          row[j] += key[i] * delta[j];
          result[j] += row[j] * query[i];
        }
      }
    }
  }
};

}  // namespace

std::tuple<Tensor&, Tensor&> gated_delta_rule_out(RuntimeContext& ctx, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor& decay, const Tensor& beta,
                                                  const Tensor& initial_state, Tensor& out,
                                                  Tensor& final_state_out) {
  const std::tuple<Tensor&, Tensor&> result(out, final_state_out);
  if (!check(ctx, query, key, value, decay, beta, initial_state, out, final_state_out) ||
      !resize_out(ctx, kOp, out, value.sizes()) ||
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
  const int64_t heads = query.size(0) * query.size(1), tokens = query.size(2), dk = query.size(3),
                dv = value.size(3);
  if (out.numel() == 0) return result;
  EngineScratch scratch(ctx);
  executorch::cpu::Scratch& memory = scratch;
  const executorch::cpu::Scratch::Frame frame(memory);
  const ThreadScratch<float> deltas(memory, dv);
  if (!require_scratch(ctx, kOp, static_cast<bool>(deltas))) return result;
  const float *q = query.const_data_ptr<float>(), *k = key.const_data_ptr<float>(),
              *v = value.const_data_ptr<float>(), *d = decay.const_data_ptr<float>(),
              *b = beta.const_data_ptr<float>();
  float *state = final_state_out.mutable_data_ptr<float>(), *to = out.mutable_data_ptr<float>();
  deltas.parallel_for(heads, 1, [&](int64_t begin, int64_t end, float* delta) {
    for (int64_t h = begin; h < end; ++h) {
      const int64_t qk = h * tokens * dk, vo = h * tokens * dv;
      Head{q + qk,  k + qk, v + vo, d + qk, b + h * tokens, state + h * dk * dv,
           to + vo, tokens, dk,     dv}
          .run(delta);
    }
  });
  return result;
}

}  // namespace torch::executor::native
