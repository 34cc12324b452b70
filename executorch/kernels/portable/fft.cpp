#include <executorch/cpu/nn/fft.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>
#include <cmath>

// Discrete Fourier transforms along one dim after the other, by the engine. Scratch memory beside
// the engine's: for a transform to real numbers over several dims the input once.
namespace torch::executor::native {

using namespace internal;

namespace {

using Kind = executorch::cpu::Fft::Kind;

/// One transform along a dim of tensors whose elements begin at src and dst; `to` has the shape of
/// the result. The same elements may be src and dst.
struct Transform {
  Kind kind;
  bool wide, forward;
  int64_t dim, n;
  double scale;

  bool run(KernelRuntimeContext& ctx, const char* op, const void* src, const Layout& from,
           void* dst, const Layout& to) const {
    Layout in = from, out = to;
    in.erase(static_cast<int>(dim));
    out.erase(static_cast<int>(dim));
    Loop loop(in.shape);
    loop.add(in.strides).add(out.strides);
    loop.collapse();
    executorch::cpu::Fft::Dim lines[kTensorDimensionLimit];
    for (int d = 0; d < loop.ndim; ++d) {
      lines[d] = {loop.sizes[d], loop.strides[0][d], loop.strides[1][d]};
    }
    executorch::cpu::Fft fft;
    fft.kind = kind;
    fft.wide = wide;
    fft.forward = forward;
    fft.n = n;
    fft.kept = to.shape[dim];
    fft.scale = scale;
    fft.from = src;
    fft.to = dst;
    fft.from_step = from.strides[dim];
    fft.to_step = to.strides[dim];
    fft.dims = lines;
    fft.n_dims = loop.ndim;
    EngineScratch scratch(ctx);
    return require_scratch(ctx, op, fft.run(scratch));
  }
};

/// The dims to transform, after checks, and the product of their extents in `shape`.
struct Dims {
  size_t n = 0;
  int64_t dim[kTensorDimensionLimit];
  double scale = 1;

  bool read(KernelRuntimeContext& ctx, const char* op, IntArrayRef list, const Shape& shape,
            int64_t normalization) {
    // A number without dims would pass as one with a dim 0 or -1.
    ET_REQUIRE(ctx, shape.ndim() > 0, InvalidArgument, false, "%s: a 0-d tensor has no lines", op);
    uint32_t mask = 0;
    if (!dim_mask(ctx, op, std::optional<IntArrayRef>(list), shape.ndim(), false, mask))
      return false;
    double length = 1;
    for (int64_t d : list) {
      dim[n] = d < 0 ? d + shape.ndim() : d;
      length *= shape[dim[n]];
      ET_REQUIRE(ctx, shape[dim[n]] > 0, InvalidArgument, false,
                 "%s: dim %" PRId64 " of shape %s is empty", op, dim[n],
                 ShapeText(shape.ref()).c_str());
      ++n;
    }
    ET_REQUIRE(ctx, n > 0 && normalization >= 0 && normalization <= 2, InvalidArgument, false,
               "%s: %d dims and normalization %" PRId64 "; a dim and 0, 1 or 2 were expected", op,
               static_cast<int>(n), normalization);
    scale = normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(length) : 1 / length;
    return true;
  }
  int64_t last() const { return dim[n - 1]; }
};

bool require_types(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const Tensor& out,
                   bool from_real, bool to_real) {
  const auto one = [](bool real, bool wide) {
    return real ? (wide ? ScalarType::Double : ScalarType::Float)
                : (wide ? ScalarType::ComplexDouble : ScalarType::ComplexFloat);
  };
  bool known = false;
  for (bool wide : {false, true}) {
    known |= self.scalar_type() == one(from_real, wide) && out.scalar_type() == one(to_real, wide);
  }
  ET_REQUIRE(ctx, known, InvalidArgument, false, "%s: not implemented for dtype %s into %s", op,
             toString(self.scalar_type()), toString(out.scalar_type()));
  return true;
}

bool is_wide(const Tensor& t) {
  return t.scalar_type() == ScalarType::Double || t.scalar_type() == ScalarType::ComplexDouble;
}

/// Complex to complex along all of `dims` but the last, in place.
bool transform_others(KernelRuntimeContext& ctx, const char* op, const Dims& dims, bool wide,
                      bool forward, const void* src, void* dst, const Layout& layout) {
  for (size_t d = 0; d + 1 < dims.n; ++d) {
    const int64_t dim = dims.dim[d];
    const Transform lines{Kind::ComplexToComplex, wide, forward, dim, layout.shape[dim], 1};
    if (!lines.run(ctx, op, src, layout, dst, layout)) return false;
    src = dst;
  }
  return true;
}

}  // namespace

Tensor& _fft_r2c_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, bool onesided, Tensor& out) {
  constexpr const char* kOp = "_fft_r2c.out";
  Dims dims;
  Shape shape(self);
  if (!require_types(ctx, kOp, self, out, true, false) ||
      !dims.read(ctx, kOp, dim, shape, normalization)) {
    return out;
  }
  const int64_t last = dims.last(), n = self.size(last);
  const int64_t kept = onesided ? n / 2 + 1 : n;
  shape.set(last, kept);
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout to(out);
  void* const data = out.mutable_data_ptr();
  const Transform lines{Kind::RealToComplex, is_wide(self), true, last, n, dims.scale};
  (void)(lines.run(ctx, kOp, self.const_data_ptr(), Layout(self), data, to) &&
         transform_others(ctx, kOp, dims, is_wide(self), true, data, data, to));
  return out;
}

Tensor& _fft_c2c_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, bool forward, Tensor& out) {
  constexpr const char* kOp = "_fft_c2c.out";
  Dims dims;
  if (!require_types(ctx, kOp, self, out, false, false) ||
      !dims.read(ctx, kOp, dim, Shape(self), normalization) ||
      !resize_out(ctx, kOp, out, self.sizes()) || out.numel() == 0) {
    return out;
  }
  const Layout to(out);
  void* const data = out.mutable_data_ptr();
  const int64_t last = dims.last();
  const Transform lines{Kind::ComplexToComplex, is_wide(self), forward, last,
                        to.shape[last],         dims.scale};
  (void)(lines.run(ctx, kOp, self.const_data_ptr(), Layout(self), data, to) &&
         transform_others(ctx, kOp, dims, is_wide(self), forward, data, data, to));
  return out;
}

Tensor& _fft_c2r_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, int64_t last_dim_size, Tensor& out) {
  constexpr const char* kOp = "_fft_c2r.out";
  Dims dims;
  Shape shape(self);
  const int64_t named = dim.empty() ? 0 : dim[dim.size() - 1];
  const int64_t last = named < 0 ? named + self.dim() : named;
  const int64_t n = last_dim_size;
  // More numbers than the half that is needed may be there; they are not read.
  ET_REQUIRE(
      ctx,
      last >= 0 && last < self.dim() && n >= 1 && n <= INT32_MAX && self.size(last) >= n / 2 + 1,
      InvalidArgument, out,
      "%s: %" PRId64 " real numbers along dim %" PRId64 " do not come of shape %s", kOp, n, named,
      ShapeText(self).c_str());
  shape.set(last, n);
  if (!require_types(ctx, kOp, self, out, false, true) ||
      !dims.read(ctx, kOp, dim, shape, normalization) || !resize_out(ctx, kOp, out, shape) ||
      out.numel() == 0) {
    return out;
  }
  const Layout from(self);
  const void* src = self.const_data_ptr();
  EngineScratch memory(ctx);
  if (dims.n > 1) {
    executorch::cpu::Scratch& scratch = memory;
    void* const between = scratch.array<char>(executorch::cpu::Size(self.numel()) *
                                              static_cast<int64_t>(self.element_size()));
    if (!require_scratch(ctx, kOp, between != nullptr) ||
        !transform_others(ctx, kOp, dims, is_wide(self), false, src, between, from)) {
      return out;
    }
    src = between;
  }
  const Transform lines{Kind::ComplexToReal, is_wide(self), false, last, n, dims.scale};
  (void)lines.run(ctx, kOp, src, from, out.mutable_data_ptr(), Layout(out));
  return out;
}

namespace {
constexpr Kernel kFftOps[] = {
    ET_OP("aten::_fft_c2c.out", _fft_c2c_out),
    ET_OP("aten::_fft_c2r.out", _fft_c2r_out),
    ET_OP("aten::_fft_r2c.out", _fft_r2c_out),
};
}  // namespace

Span<const Kernel> fft_ops() {
  return kFftOps;
}

}  // namespace torch::executor::native
