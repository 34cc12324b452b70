#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/quantized/affine.h>
#include <executorch/kernels/quantized/functions.h>
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>

// Rows of a table of packed integers, dequantized.
namespace torch::executor::native {

using namespace internal;

namespace {

/// Element i of a packed row as an integer.
template <int kBits>
int unpack(const uint8_t* row, int64_t i) {
  if constexpr (kBits == 4) {
    return (i % 2 == 0 ? row[i / 2] >> 4 : row[i / 2] & 15) - 8;
  } else {
    return (row[i / 4] >> 2 * (i % 4) & 3) - 2;
  }
}

struct Table {
  const char* op;
  int bits;
  const Tensor& weight;
  const Tensor& scales;
  const Tensor* zero_points;

  int64_t rows() const { return weight.size(0); }
  int64_t width() const { return weight.size(1) * (8 / bits); }
  int64_t groups() const { return scales.dim() == 2 ? scales.size(1) : 1; }

  bool check(KernelRuntimeContext& ctx) const {
    const ScalarType type = weight.scalar_type();
    ET_REQUIRE(ctx,
               weight.dim() == 2 && is_contiguous(weight) &&
                   (type == ScalarType::Byte || (bits == 8 && type == ScalarType::Char)),
               InvalidArgument, false,
               "%s: a contiguous matrix of %d-bit values was expected; found %s of %s", op, bits,
               ShapeText(weight).c_str(), toString(type));
    for (const Tensor* t : {&scales, zero_points}) {
      ET_REQUIRE(ctx,
                 t == nullptr || ((t->dim() == 1 || t->dim() == 2) && t->size(0) == rows() &&
                                  t->numel() == rows() * groups() && is_contiguous(*t) &&
                                  is_real(t->scalar_type())),
                 InvalidArgument, false,
                 "%s: scales and zero points [rows] or [rows, groups] of a table of shape %s were "
                 "expected; found %s",
                 op, ShapeText(weight).c_str(), ShapeText(*t).c_str());
    }
    ET_REQUIRE(ctx, groups() > 0 && width() % groups() == 0, InvalidArgument, false,
               "%s: rows of %" PRId64 " do not divide into %" PRId64 " groups", op, width(),
               groups());
    return true;
  }

  /// n dequantized elements of a row from `begin`, in one group.
  void read(int64_t row, int64_t begin, int64_t n, float* to) const {
    const int64_t group = row * groups() + begin / (width() / groups());
    const float scale = load_at<float>(scales, group);
    const float zero = zero_points == nullptr ? 0.0f : load_at<float>(*zero_points, group);
    const uint8_t* data = weight.const_data_ptr<uint8_t>() + row * weight.size(1);
    const auto fill = [&](const auto& value) {
      for (int64_t i = 0; i < n; ++i) to[i] = (static_cast<float>(value(begin + i)) - zero) * scale;
    };
    if (bits == 4) {
      fill([data](int64_t i) { return unpack<4>(data, i); });
    } else if (bits == 2) {
      fill([data](int64_t i) { return unpack<2>(data, i); });
    } else if (weight.scalar_type() == ScalarType::Char) {
      fill([data](int64_t i) { return static_cast<int8_t>(data[i]); });
    } else {
      fill([data](int64_t i) { return data[i]; });
    }
  }
};

Tensor& embedding(KernelRuntimeContext& ctx, const Table& table, const Tensor& indices,
                  std::optional<ScalarType> dtype, Tensor& out) {
  if (!table.check(ctx) || !require_index(ctx, table.op, indices, out)) return out;
  ET_REQUIRE(ctx,
             is_float(out.scalar_type()) && dtype.value_or(out.scalar_type()) == out.scalar_type(),
             InvalidArgument, out, "%s: an out of %s cannot take a result of %s", table.op,
             toString(out.scalar_type()), toString(dtype.value_or(ScalarType::Float)));
  Shape shape(indices);
  shape.push(table.width());
  if (!resize_out(ctx, table.op, out, shape)) return out;
  ET_REQUIRE(ctx, is_contiguous(indices) && is_contiguous(out), InvalidArgument, out,
             "%s: contiguous indices and out were expected", table.op);
  const IndexValues values(indices);
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (values[i] >= 0 && values[i] < table.rows()) continue;
    fail_index(ctx, table.op, values[i], i, 0, table.rows(), 0);
    return out;
  }
  const int64_t width = table.width();
  if (width == 0) return out;
  const int64_t group = width / table.groups();
  char* data = static_cast<char*>(out.mutable_data_ptr());
  executorch::cpu::parallel_for(
      indices.numel(), std::max<int64_t>(1, 16384 / width), [&](int64_t begin, int64_t end) {
        constexpr int64_t kChunk = 512;
        float chunk[kChunk];
        for (int64_t i = begin; i < end; ++i) {
          for (int64_t first = 0, n; first < width; first += n) {
            n = std::min({kChunk, group - first % group, width - first});
            table.read(values[i], first, n, chunk);
            store(chunk, n, data + (i * width + first) * out.element_size(), out.scalar_type(), 1);
          }
        }
      });
  return out;
}

}  // namespace

#define ET_EMBEDDING(name, bits)                                                                   \
  Tensor& quantized_embedding_##name##_out(KernelRuntimeContext& ctx, const Tensor& weight,        \
                                           const Tensor& weight_scales,                            \
                                           const std::optional<Tensor>& weight_zero_points,        \
                                           int64_t, int64_t, const Tensor& indices, Tensor& out) { \
    return embedding(                                                                              \
        ctx, {"embedding_" #name ".out", bits, weight, weight_scales, get(weight_zero_points)},    \
        indices, std::nullopt, out);                                                               \
  }                                                                                                \
  Tensor& quantized_embedding_##name##_dtype_out(                                                  \
      KernelRuntimeContext& ctx, const Tensor& weight, const Tensor& weight_scales,                \
      const std::optional<Tensor>& weight_zero_points, int64_t, int64_t, const Tensor& indices,    \
      std::optional<ScalarType> dtype, Tensor& out) {                                              \
    return embedding(                                                                              \
        ctx,                                                                                       \
        {"embedding_" #name ".dtype_out", bits, weight, weight_scales, get(weight_zero_points)},   \
        indices, dtype, out);                                                                      \
  }
ET_EMBEDDING(byte, 8)
ET_EMBEDDING(4bit, 4)
ET_EMBEDDING(2bit, 2)
#undef ET_EMBEDDING

namespace {

constexpr Kernel kQuantizedEmbeddingOps[] = {
    ET_OP("quantized_decomposed::embedding_2bit.dtype_out", quantized_embedding_2bit_dtype_out,
          "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
          "weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None, "
          "Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::embedding_2bit.out", quantized_embedding_2bit_out,
          "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
          "weight_quant_min, int weight_quant_max, Tensor indices, *, Tensor(a!) out) -> "
          "Tensor(a!)"),
    ET_OP("quantized_decomposed::embedding_4bit.dtype_out", quantized_embedding_4bit_dtype_out,
          "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
          "weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None, "
          "Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::embedding_4bit.out", quantized_embedding_4bit_out,
          "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
          "weight_quant_min, int weight_quant_max, Tensor indices, *, Tensor(a!) out) -> "
          "Tensor(a!)"),
    ET_OP("quantized_decomposed::embedding_byte.dtype_out", quantized_embedding_byte_dtype_out,
          "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
          "weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None, "
          "Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::embedding_byte.out", quantized_embedding_byte_out,
          "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
          "weight_quant_min, int weight_quant_max, Tensor indices, *, Tensor(a!) out) -> "
          "Tensor(a!)"),
};

}  // namespace

Span<const Kernel> quantized_embedding_ops() {
  return kQuantizedEmbeddingOps;
}

}  // namespace torch::executor::native
