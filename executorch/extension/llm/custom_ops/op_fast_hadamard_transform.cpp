#include <executorch/extension/llm/custom_ops/op_fast_hadamard_transform.h>
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace torch::executor::native {

using namespace internal;
using executorch::aten::ScalarType;
using executorch::cpu::Scratch;
using executorch::cpu::ThreadScratch;
using executorch::runtime::Kernel;
using executorch::runtime::Span;

namespace {

constexpr int64_t kOdd = 28;
constexpr int64_t kBlock = 7;
// The matrix of order 28 consists of 4 x 4 circulant blocks of order 7. Bit c says whether column c
// of a block's first row is +1; each further row is the one above it, rotated one place to the
// right.
constexpr uint8_t kBlocks[4][4] = {
    {0x01, 0x3c, 0x5a, 0x66},
    {0x43, 0x01, 0x19, 0x5a},
    {0x25, 0x66, 0x01, 0x43},
    {0x19, 0x25, 0x3c, 0x01},
};

float sign(int64_t row, int64_t column) {
  const int64_t rotated = (column % kBlock - row % kBlock + kBlock) % kBlock;
  return (kBlocks[row / kBlock][column / kBlock] >> rotated & 1) != 0 ? 1.0f : -1.0f;
}

struct Transform {
  int64_t power;  // 2^m
  bool odd;       // times 28

  static std::optional<Transform> of(int64_t n) {
    const auto is_power = [](int64_t x) { return x > 0 && (x & (x - 1)) == 0; };
    if (is_power(n)) return Transform{n, false};
    if (n % kOdd == 0 && is_power(n / kOdd)) return Transform{n / kOdd, true};
    return std::nullopt;
  }

  void run(float* x) const {
    for (int64_t block = 0; block < (odd ? kOdd : 1); ++block) butterflies(x + block * power);
    if (!odd) return;
    for (int64_t j = 0; j < power; ++j) {
      float column[kOdd];
      for (int64_t i = 0; i < kOdd; ++i) column[i] = x[i * power + j];
      for (int64_t to = 0; to < kOdd; ++to) {
        float sum = 0;
        for (int64_t from = 0; from < kOdd; ++from) sum += sign(from, to) * column[from];
        x[to * power + j] = sum;
      }
    }
  }

  void butterflies(float* x) const {
    for (int64_t half = 1; half < power; half *= 2) {
      for (int64_t begin = 0; begin < power; begin += 2 * half) {
        float *const a = x + begin, *const b = a + half;
        for (int64_t j = 0; j < half; ++j) {
          const float sum = a[j] + b[j], difference = a[j] - b[j];
          a[j] = sum;
          b[j] = difference;
        }
      }
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(power));
    for (int64_t j = 0; j < power; ++j) x[j] *= scale;
  }
};

}  // namespace

Tensor& fast_hadamard_transform_out(RuntimeContext& ctx, const Tensor& mat, Tensor& out) {
  constexpr const char* kOp = "fast_hadamard_transform.out";
  const ScalarType type = mat.scalar_type();
  ET_REQUIRE(ctx, engine_type(type).has_value() && out.scalar_type() == type, InvalidArgument, out,
             "%s: an input of Float, Half or BFloat16 and an out like it were expected; found %s "
             "and %s",
             kOp, executorch::runtime::toString(type),
             executorch::runtime::toString(out.scalar_type()));
  const int64_t n = mat.dim() > 0 ? mat.size(mat.dim() - 1) : 1;
  const auto transform = Transform::of(n);
  ET_REQUIRE(ctx, mat.numel() == 0 || transform.has_value(), InvalidArgument, out,
             "%s: rows of 2^m or 28 * 2^m numbers were expected; found %" PRId64, kOp, n);
  if (!resize_out(ctx, kOp, out, mat.sizes())) return out;
  ET_REQUIRE(ctx, is_contiguous(mat) && is_contiguous(out), InvalidArgument, out,
             "%s: contiguous tensors were expected", kOp);
  if (mat.numel() == 0) return out;
  EngineScratch memory(ctx);
  Scratch& scratch = memory;
  const Scratch::Frame frame(scratch);
  const ThreadScratch<float> rows(scratch, n);
  if (!require_scratch(ctx, kOp, static_cast<bool>(rows))) return out;
  const char* const from = static_cast<const char*>(mat.const_data_ptr());
  char* const to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t row_bytes = n * static_cast<int64_t>(mat.element_size());
  rows.parallel_for(mat.numel() / n, std::max<int64_t>(1, 4096 / n),
                    [&](int64_t begin, int64_t end, float* row) {
                      for (int64_t i = begin; i < end; ++i) {
                        load(from + i * row_bytes, type, 1, n, row);
                        transform->run(row);
                        store(row, n, to + i * row_bytes, type, 1);
                      }
                    });
  return out;
}

namespace {

constexpr Kernel kHadamardOps[] = {
    ET_OP("llama::fast_hadamard_transform.out", fast_hadamard_transform_out),
};

}  // namespace

Span<const Kernel> hadamard_ops() {
  return kHadamardOps;
}

}  // namespace torch::executor::native
