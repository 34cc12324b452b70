#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Sums, means and maxima of the rows of a table, one for each bag of indices.
namespace torch::executor::native {

using namespace internal;

namespace {

enum class Mode : int64_t { Sum = 0, Mean = 1, Max = 2 };

struct Bags {
  const Tensor& weight;
  const Tensor& indices;
  const Tensor& offsets;
  Mode mode;
  const std::optional<Tensor>& factors;
  bool include_last_offset;
  int64_t padding_idx;

  int64_t count() const { return offsets.size(0) - include_last_offset; }
  IndexValues values() const { return IndexValues(indices); }
  int64_t begin(int64_t bag) const {
    return bag < offsets.size(0) ? IndexValues(offsets)[bag] : indices.numel();
  }
  int64_t end(int64_t bag) const { return bag + 1 < count() ? begin(bag + 1) : last_end(); }
  int64_t last_end() const { return include_last_offset ? begin(count()) : indices.numel(); }
  /// Whether `map`, from indices to bags, stays empty, as in eager PyTorch. The shapes that an
  /// export records have it filled for other types than Float and Half: there its size decides.
  bool are_simple(const Tensor& map) const {
    const ScalarType type = weight.scalar_type();
    return mode == Mode::Sum && padding_idx < 0 &&
           (type == ScalarType::Float || type == ScalarType::Half || map.numel() < indices.numel());
  }
};

/// Checks shapes and types, and that results do not overlap the indices.
bool require_operands(KernelRuntimeContext& ctx, const char* op, const Bags& bags,
                      const TensorQuadruple& results) {
  const auto& [weight, indices, offsets, mode, factors, include_last_offset, padding_idx] = bags;
  const auto& [out, offset2bag, bag_size, max_indices] = results;
  ET_REQUIRE(ctx,
             weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1 && mode >= Mode::Sum &&
                 mode <= Mode::Max && offsets.size(0) >= include_last_offset &&
                 is_contiguous(indices) && is_contiguous(offsets),
             InvalidArgument, false,
             "%s: a table [n, d], 1-d indices and offsets and a mode from 0 to 2 were expected; "
             "found %s, %s, %s and %" PRId64,
             op, ShapeText(weight).c_str(), ShapeText(indices).c_str(), ShapeText(offsets).c_str(),
             static_cast<int64_t>(mode));
  ET_REQUIRE(ctx,
             is_float(weight.scalar_type()) && out.scalar_type() == weight.scalar_type() &&
                 (!factors.has_value() ||
                  (factors->scalar_type() == weight.scalar_type() && mode == Mode::Sum &&
                   factors->numel() == indices.numel() && is_contiguous(*factors))),
             InvalidArgument, false,
             "%s: one floating dtype was expected, and per-sample weights only for sums", op);
  for (const Tensor* t : {&indices, &offsets}) {
    if (!require_index_dtype(ctx, op, *t)) return false;
    for (const Tensor* written : {&out, &offset2bag, &bag_size, &max_indices}) {
      if (!require_apart(ctx, op, *t, *written)) return false;
    }
  }
  for (const Tensor* t : {&offset2bag, &bag_size, &max_indices}) {
    if (!require_index_dtype(ctx, op, *t)) return false;
  }
  return true;
}

/// Checks that offsets begin at zero and do not decrease, and that indices are rows of the table.
bool require_bags(KernelRuntimeContext& ctx, const char* op, const Bags& bags) {
  const int64_t n = bags.indices.numel();
  int64_t before = 0;
  for (int64_t i = 0; i < bags.offsets.size(0); ++i) {
    const int64_t at = bags.begin(i);
    ET_REQUIRE(ctx, at >= before && at <= n && (i > 0 || at == 0), InvalidArgument, false,
               "%s: offset %" PRId64 " is %" PRId64 "; offsets begin at 0 and rise to %" PRId64, op,
               i, at, n);
    before = at;
  }
  const IndexValues values = bags.values();
  for (int64_t i = 0; i < n; ++i) {
    if (values[i] >= 0 && values[i] < bags.weight.size(0)) continue;
    fail_index(ctx, op, values[i], i, 0, bags.weight.size(0), 0);
    return false;
  }
  return true;
}

template <class T>
void put(Tensor& t, int64_t i, T value) {
  if (t.scalar_type() == ScalarType::Long) {
    t.mutable_data_ptr<int64_t>()[i] = value;
  } else {
    t.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>(value);
  }
}

constexpr int64_t kColumns = 256;

/// Computes columns [first, first + width) of one bag's result, and for Max the rows of the maxima.
template <class T, class C>
void fold_bag(const Bags& bags, int64_t bag, int64_t count, int64_t first, int64_t width, T* result,
              Tensor* rows) {
  const Layout table(bags.weight);
  const T* data = bags.weight.const_data_ptr<T>() + first * table.strides[1];
  const IndexValues values = bags.values();
  C sums[kColumns] = {};
  int64_t best[kColumns] = {};
  bool any = false;
  for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
    const int64_t row = values[i];
    if (row == bags.padding_idx) continue;
    const T* from = data + row * table.strides[0];
    const C factor =
        bags.factors.has_value() ? static_cast<C>(bags.factors->const_data_ptr<T>()[i]) : C(1);
    for (int64_t j = 0; j < width; ++j) {
      const C x = static_cast<C>(from[j * table.strides[1]]);
      if (bags.mode != Mode::Max) {
        sums[j] += x * factor;
      } else if (!any || x > sums[j]) {
        sums[j] = x;
        best[j] = row;
      }
    }
    any = true;
  }
  const C scale = bags.mode == Mode::Mean && count > 0 ? C(1) / static_cast<C>(count) : C(1);
  for (int64_t j = 0; j < width; ++j) {
    result[first + j] = static_cast<T>(sums[j] * scale);
    if (rows != nullptr) put(*rows, bag * bags.weight.size(1) + first + j, best[j]);
  }
}

/// Resizes the results, and fills those with zeros of which some rows may not be written.
bool prepare_results(KernelRuntimeContext& ctx, const char* op, const Bags& bags, bool simple,
                     const TensorQuadruple& results) {
  const auto& [out, offset2bag, bag_size, max_indices] = results;
  // Some of eager's fake results count the last offset as a bag of its own.
  const int64_t n_offsets = bags.offsets.size(0);
  const auto bags_of = [&](const Tensor& t) {
    return t.dim() > 0 && t.size(0) == n_offsets ? n_offsets : bags.count();
  };
  const int64_t width = bags.weight.size(1);
  Shape best_shape{bags_of(max_indices)};
  if (bags.mode == Mode::Max) best_shape.push(width);
  if (!resize_out(ctx, op, out, Shape{bags.count(), width}) ||
      !resize_out(ctx, op, offset2bag, Shape{simple ? 0 : bags.indices.numel()}) ||
      !resize_out(ctx, op, bag_size, Shape{bags_of(bag_size)}) ||
      !resize_out(ctx, op, max_indices, best_shape)) {
    return false;
  }
  ET_REQUIRE(ctx, is_contiguous(out) && is_contiguous(max_indices), InvalidArgument, false,
             "%s: a contiguous out was expected", op);
  fill(Scalar(0), bag_size);
  fill(Scalar(0), max_indices);
  return true;
}

TensorQuadruple embedding_bag(KernelRuntimeContext& ctx, const char* op, const Bags& bags,
                              const TensorQuadruple& results) {
  const auto& [out, offset2bag, bag_size, max_indices] = results;
  if (!require_operands(ctx, op, bags, results)) return results;
  const bool simple = bags.are_simple(offset2bag);
  if (!require_bags(ctx, op, bags) || !prepare_results(ctx, op, bags, simple, results)) {
    return results;
  }
  const int64_t width = bags.weight.size(1);
  if (!require_affordable(ctx, op, Size(bags.indices.numel()) * width,
                          elements_of(bags.weight, bags.indices, out))) {
    return results;
  }
  Tensor* const rows = bags.mode == Mode::Max ? &max_indices : nullptr;
  for (int64_t bag = 0; bag < bags.count(); ++bag) {
    int64_t count = 0;
    for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
      count += bags.values()[i] != bags.padding_idx;
      if (!simple) put(offset2bag, i, bag);
    }
    put(bag_size, bag, count);
    if (rows == nullptr) put(max_indices, bag, count);
    with_dtype(bags.weight.scalar_type(), [&, &result = out](auto tag) {
      using T = decltype(tag);
      if constexpr (!std::is_integral_v<T>) {
        using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
        for (int64_t first = 0; first < width; first += kColumns) {
          fold_bag<T, C>(bags, bag, count, first, std::min(kColumns, width - first),
                         result.template mutable_data_ptr<T>() + bag * width, rows);
        }
      }
    });
  }
  return results;
}

}  // namespace

// The arguments about frequencies and sparsity are ignored; they affect gradients only.
TensorQuadruple _embedding_bag_out(KernelRuntimeContext& ctx, const Tensor& weight,
                                   const Tensor& indices, const Tensor& offsets, bool, int64_t mode,
                                   bool, const std::optional<Tensor>& per_sample_weights,
                                   bool include_last_offset, int64_t padding_idx, Tensor& out0,
                                   Tensor& out1, Tensor& out2, Tensor& out3) {
  return embedding_bag(ctx, "_embedding_bag.out",
                       {weight, indices, offsets, static_cast<Mode>(mode), per_sample_weights,
                        include_last_offset, padding_idx},
                       {out0, out1, out2, out3});
}

TensorQuadruple _embedding_bag_forward_only_out(KernelRuntimeContext& ctx, const Tensor& weight,
                                                const Tensor& indices, const Tensor& offsets, bool,
                                                int64_t mode, bool,
                                                const std::optional<Tensor>& per_sample_weights,
                                                bool include_last_offset, int64_t padding_idx,
                                                Tensor& out0, Tensor& out1, Tensor& out2,
                                                Tensor& out3) {
  return embedding_bag(ctx, "_embedding_bag_forward_only.out",
                       {weight, indices, offsets, static_cast<Mode>(mode), per_sample_weights,
                        include_last_offset, padding_idx},
                       {out0, out1, out2, out3});
}

namespace {
constexpr Kernel kEmbeddingBagOps[] = {
    ET_OP("aten::_embedding_bag.out", _embedding_bag_out),
    ET_OP("aten::_embedding_bag_forward_only.out", _embedding_bag_forward_only_out),
};
}  // namespace

Span<const Kernel> embedding_bag_ops() {
  return kEmbeddingBagOps;
}

}  // namespace torch::executor::native
