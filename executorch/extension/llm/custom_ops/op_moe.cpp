#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/extension/llm/custom_ops/op_moe.h>
#include <executorch/extension/llm/custom_ops/packed_linear.h>
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

namespace torch::executor::native {

using namespace internal;
using executorch::aten::ScalarType;
using executorch::cpu::Activation;
using executorch::cpu::Arithmetic;
using executorch::cpu::Gemm;
using executorch::cpu::LoopScratch;
using executorch::cpu::parallel_for;
using executorch::cpu::Scratch;
using executorch::cpu::ThreadScratch;
using executorch::runtime::Kernel;
using executorch::runtime::Span;

namespace {

constexpr const char* kOp = "quantized_moe_ffn.out";
/// Tokens that are computed at a time, for the sake of memory, and rows of weights.
constexpr int64_t kTokens = 256, kPanel = 64;

struct Experts {
  int64_t count, active, dim, hidden;
  const float *gate, *bias;  // bias: may be null
  const uint8_t *w13, *w2;
  int64_t w13_bytes, w2_bytes;  // of an expert
  PackedLinear up, down;
  bool sigmoid;
  float route_scale;
};

bool is_matrix(const Tensor& t, ScalarType type, int64_t rows) {
  return t.scalar_type() == type && t.dim() == 2 && t.size(0) == rows && is_contiguous(t);
}

bool check_weights(KernelRuntimeContext& ctx, const char* name, const Tensor& packed,
                   const Experts& e, const PackedLinear& layer) {
  ET_REQUIRE(ctx,
             is_matrix(packed, ScalarType::Byte, e.count) && layer.bytes().within(packed.size(1)),
             InvalidArgument, false,
             "%s: %s of at least %" PRId64 " bytes for each of %" PRId64 " experts, [%" PRId64
             ",%" PRId64 "] in groups of %" PRId64 ", was expected; found %s of %s",
             kOp, name, layer.bytes().value_or(-1), e.count, layer.n, layer.k, layer.group_size,
             ShapeText(packed).c_str(), executorch::runtime::toString(packed.scalar_type()));
  return true;
}

bool check(KernelRuntimeContext& ctx, const Experts& e, const Tensor& x, const Tensor& gate_weight,
           const Tensor& bias, const Tensor& packed_w13, const Tensor& packed_w2,
           const Tensor& out) {
  ET_REQUIRE(ctx,
             e.dim > 0 && is_matrix(gate_weight, ScalarType::Float, e.count) &&
                 gate_weight.size(1) == e.dim && x.dim() == 2 &&
                 is_matrix(x, ScalarType::Float, x.size(0)) && x.size(1) == e.dim,
             InvalidArgument, false,
             "%s: contiguous Float tensors [tokens,%" PRId64 "] and [%" PRId64 ",%" PRId64
             "] were expected; found %s and %s",
             kOp, e.dim, e.count, e.dim, ShapeText(x).c_str(), ShapeText(gate_weight).c_str());
  ET_REQUIRE(ctx, e.active > 0 && e.active <= e.count, InvalidArgument, false,
             "%s: 1 to %" PRId64 " active experts were expected; found %" PRId64, kOp, e.count,
             e.active);
  ET_REQUIRE(ctx,
             bias.numel() == 0 || (e.sigmoid && bias.scalar_type() == ScalarType::Float &&
                                   bias.dim() == 1 && bias.size(0) == e.count),
             InvalidArgument, false,
             "%s: a Float bias [%" PRId64 "], with sigmoid, or an empty one was expected; found %s",
             kOp, e.count, ShapeText(bias).c_str());
  const int64_t group = e.up.group_size, bits = e.up.bits;
  ET_REQUIRE(ctx,
             group > 0 && group % PackedLinear::kColumns == 0 && e.hidden > 0 &&
                 e.dim % group == 0 && e.hidden % group == 0 && (bits == 4 || bits == 8),
             InvalidArgument, false,
             "%s: 4 or 8 bits and groups of a multiple of 16 that divides %" PRId64 " and %" PRId64
             " were expected; found %" PRId64 " and %" PRId64,
             kOp, e.dim, e.hidden, bits, group);
  ET_REQUIRE(ctx, out.scalar_type() == ScalarType::Float, InvalidArgument, false,
             "%s: a result of Float was expected; found %s", kOp,
             executorch::runtime::toString(out.scalar_type()));
  return check_weights(ctx, "packed_w13", packed_w13, e, e.up) &&
         check_weights(ctx, "packed_w2", packed_w2, e, e.down);
}

/// Which experts some tokens go through, and their rows, expert after expert.
struct Routes {
  int64_t tokens, active;
  int32_t* chosen;  // [tokens, active]
  float* shares;    // [tokens, active]
  int64_t* row;     // [tokens, active]: where in the order of experts
  int64_t* first;   // [count + 1]: the first row of each expert
  int32_t* used;    // the experts that have rows
  int64_t n_used;
};

/// The experts of one token, the best first, and what each counts.
void choose(const Experts& e, const float* scores, int32_t* order, int32_t* chosen, float* shares) {
  const auto rank = [&](int32_t i) {
    return e.bias != nullptr ? scores[i] + e.bias[i] : scores[i];
  };
  const auto better = [&](int32_t a, int32_t b) {
    const float x = rank(a), y = rank(b);
    if (std::isnan(x) || std::isnan(y))
      return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x != y ? x > y : a < b;
  };
  for (int64_t i = 0; i < e.count; ++i) order[i] = static_cast<int32_t>(i);
  std::partial_sort(order, order + e.active, order + e.count, better);
  float sum = 0, most = scores[order[0]];
  for (int64_t i = 0; i < e.active; ++i) {
    const float score = scores[chosen[i] = order[i]];
    shares[i] = e.sigmoid ? score : std::exp(score - most);
    sum += shares[i];
  }
  const float scale =
      e.sigmoid ? e.route_scale / std::max(sum, std::numeric_limits<float>::min()) : 1 / sum;
  for (int64_t i = 0; i < e.active; ++i) shares[i] *= scale;
}

/// False if memory is refused.
bool route(const Experts& e, const float* x, Scratch& memory, Routes& routes) {
  const Scratch::Frame frame(memory);
  float* const scores = memory.array<float>(Size(routes.tokens) * e.count);
  const ThreadScratch<int32_t> orders(memory, e.count);
  if (scores == nullptr || !orders) return false;
  Gemm<float> gemm;
  gemm.m = routes.tokens, gemm.n = e.count, gemm.k = e.dim;
  gemm.a = {x, e.dim, 1};
  gemm.b = {e.gate, 1, e.dim};
  gemm.c = {scores, e.count, 1};
  if (e.sigmoid) gemm.act.kind = Activation::Kind::Sigmoid;
  if (!gemm.run(memory)) return false;
  memory.add_products(Size(routes.tokens) * e.count * 32);
  orders.parallel_for(routes.tokens, 8, [&](int64_t begin, int64_t end, int32_t* order) {
    for (int64_t t = begin; t < end; ++t) {
      choose(e, scores + t * e.count, order, routes.chosen + t * e.active,
             routes.shares + t * e.active);
    }
  });
  return true;
}

/// Orders the pairs of tokens and experts by experts.
void sort(const Experts& e, Routes& routes) {
  const int64_t pairs = routes.tokens * routes.active;
  std::fill_n(routes.first, e.count + 1, int64_t{0});
  for (int64_t i = 0; i < pairs; ++i) ++routes.first[routes.chosen[i] + 1];
  routes.n_used = 0;
  for (int64_t i = 0; i < e.count; ++i) {
    if (routes.first[i + 1] > 0) routes.used[routes.n_used++] = static_cast<int32_t>(i);
    routes.first[i + 1] += routes.first[i];
  }
  // first[i] is the next free row of expert i, and then the first of expert i + 1.
  for (int64_t i = 0; i < pairs; ++i) routes.row[i] = routes.first[routes.chosen[i]]++;
  for (int64_t i = e.count; i > 0; --i) routes.first[i] = routes.first[i - 1];
  routes.first[0] = 0;
}

/// to[r] = w of r's expert times from[r], for all rows of the routes. False if memory is refused.
bool multiply(const Routes& routes, const PackedLinear& layer, const uint8_t* weights,
              int64_t expert_bytes, const float* from, int64_t from_stride, float* to,
              Scratch& memory) {
  const int64_t panels = ceil_div(Size(layer.n), kPanel).value();
  LoopScratch threads(memory);
  return threads.parallel_for(
      routes.n_used * panels, 1, [&](int64_t begin, int64_t end, Scratch& own) {
        for (int64_t i = begin; i < end; ++i) {
          const Scratch::Frame frame(own);
          const int64_t expert = routes.used[i / panels], column = i % panels * kPanel,
                        n = std::min(kPanel, layer.n - column), first = routes.first[expert];
          float* const panel =
              own.array<float>(round_up(Size(n), PackedLinear::kRows) * Size(layer.k));
          if (panel == nullptr) return false;
          layer.unpack(weights + expert * expert_bytes, column, n, panel);
          Gemm<float> gemm;
          gemm.m = routes.first[expert + 1] - first, gemm.n = n, gemm.k = layer.k;
          gemm.a = {from + first * from_stride, from_stride, 1};
          gemm.b = {panel, 1, layer.k};
          gemm.c = {to + first * layer.n + column, layer.n, 1};
          if (!gemm.run(own)) return false;
        }
        return true;
      });
}

bool check_headers(KernelRuntimeContext& ctx, const Experts& e, const Routes& routes) {
  for (int64_t i = 0; i < routes.n_used; ++i) {
    const int64_t expert = routes.used[i];
    ET_REQUIRE(
        ctx, e.up.begins(e.w13 + expert * e.w13_bytes) && e.down.begins(e.w2 + expert * e.w2_bytes),
        InvalidArgument, false,
        "%s: the weights of expert %" PRId64
        " were not packed by torchao for every machine, "
        "with %" PRId64 " bits and without zero points",
        kOp, expert, e.up.bits);
  }
  return true;
}

/// Some tokens' results; the context failed where false.
bool run(KernelRuntimeContext& ctx, const Experts& e, const float* x, int64_t tokens, float* out,
         Scratch& memory) {
  const Scratch::Frame frame(memory);
  const Size pairs = Size(tokens) * e.active;
  Routes routes = {tokens,
                   e.active,
                   memory.array<int32_t>(pairs),
                   memory.array<float>(pairs),
                   memory.array<int64_t>(pairs),
                   memory.array<int64_t>(Size(e.count) + 1),
                   memory.array<int32_t>(e.count),
                   0};
  float* const rows = memory.array<float>(pairs * e.dim);
  float* const hidden = memory.array<float>(pairs * 2 * e.hidden);
  const bool granted = routes.chosen != nullptr && routes.shares != nullptr &&
                       routes.row != nullptr && routes.first != nullptr && routes.used != nullptr &&
                       rows != nullptr && hidden != nullptr;
  if (!require_scratch(ctx, kOp, granted && route(e, x, memory, routes))) return false;
  sort(e, routes);
  if (!check_headers(ctx, e, routes)) return false;
  for (int64_t i = 0; i < pairs.value(); ++i) {
    std::copy_n(x + i / e.active * e.dim, e.dim, rows + routes.row[i] * e.dim);
  }
  if (!require_scratch(ctx, kOp,
                       multiply(routes, e.up, e.w13, e.w13_bytes, rows, e.dim, hidden, memory))) {
    return false;
  }
  parallel_for(pairs.value(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* const row = hidden + i * 2 * e.hidden;
      executorch::cpu::apply(Activation{Activation::Kind::Silu}, row, row, e.hidden);
      executorch::cpu::apply(Arithmetic::Multiply, executorch::cpu::Type::F32, {row},
                             {row + e.hidden}, row, e.hidden);
    }
  });
  if (!require_scratch(
          ctx, kOp,
          multiply(routes, e.down, e.w2, e.w2_bytes, hidden, 2 * e.hidden, rows, memory))) {
    return false;
  }
  parallel_for(tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* const sum = out + t * e.dim;
      std::fill_n(sum, e.dim, 0.0f);
      for (int64_t i = t * e.active; i < (t + 1) * e.active; ++i) {
        const float share = routes.shares[i];
        const float* const row = rows + routes.row[i] * e.dim;
        for (int64_t p = 0; p < e.dim; ++p) sum[p] += share * row[p];
      }
    }
  });
  return true;
}

}  // namespace

Tensor& quantized_moe_ffn_out(KernelRuntimeContext& ctx, const Tensor& x, const Tensor& gate_weight,
                              const Tensor& expert_bias, const Tensor& packed_w13,
                              const Tensor& packed_w2, int64_t num_activated_experts,
                              int64_t num_experts, int64_t hidden_dim, int64_t dim,
                              int64_t group_size, int64_t weight_nbit,
                              executorch::aten::string_view score_func, double route_scale,
                              Tensor& out) {
  ET_REQUIRE(ctx, score_func == "sigmoid" || score_func == "softmax", InvalidArgument, out,
             "%s: score_func \"sigmoid\" or \"softmax\" was expected; found \"%.*s\"", kOp,
             static_cast<int>(std::min<size_t>(score_func.size(), 40)), score_func.data());
  Experts e = {};
  e.count = num_experts, e.active = num_activated_experts, e.dim = dim, e.hidden = hidden_dim;
  e.up = {(Size(hidden_dim) * 2).value_or(0), dim, group_size, weight_nbit};
  e.down = {dim, hidden_dim, group_size, weight_nbit};
  e.sigmoid = score_func == "sigmoid";
  e.route_scale = static_cast<float>(route_scale);
  if (!check(ctx, e, x, gate_weight, expert_bias, packed_w13, packed_w2, out) ||
      !resize_out(ctx, kOp, out, x.sizes())) {
    return out;
  }
  ET_REQUIRE(ctx, is_contiguous(out), InvalidArgument, out, "%s: a contiguous result was expected",
             kOp);
  e.gate = gate_weight.const_data_ptr<float>();
  e.bias = expert_bias.numel() > 0 ? expert_bias.const_data_ptr<float>() : nullptr;
  e.w13 = packed_w13.const_data_ptr<uint8_t>(), e.w2 = packed_w2.const_data_ptr<uint8_t>();
  e.w13_bytes = packed_w13.size(1), e.w2_bytes = packed_w2.size(1);
  EngineScratch scratch(ctx);
  Scratch& memory = scratch;
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t t = 0; t < x.size(0); t += kTokens) {
    const int64_t tokens = std::min<int64_t>(kTokens, x.size(0) - t);
    if (!run(ctx, e, from + t * dim, tokens, to + t * dim, memory)) return out;
  }
  return out;
}

namespace {

constexpr Kernel kMoeOps[] = {
    ET_OP("llama::quantized_moe_ffn.out", quantized_moe_ffn_out),
};

}  // namespace

Span<const Kernel> moe_ops() {
  return kMoeOps;
}

}  // namespace torch::executor::native
