#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

// Adaptive max pooling: the maxima of windows that divide an image into a given number of parts,
// and the positions of the maxima.
namespace torch::executor::native {

using namespace internal;

namespace {

/// Up to three spatial dims; those missing have extent one.
struct Planes {
  int64_t in[kSpatial] = {1, 1, 1}, out[kSpatial] = {1, 1, 1};
  int64_t in_step[kSpatial] = {}, out_step[kSpatial] = {}, index_step[kSpatial] = {};

  template <class T>
  void run(const T* from, T* to, int64_t* where) const {
    int64_t begin[kSpatial], end[kSpatial], o[kSpatial];
    const auto window = [&](int d) {
      begin[d] = o[d] * in[d] / out[d];
      end[d] = ((o[d] + 1) * in[d] + out[d] - 1) / out[d];
    };
    for (o[0] = 0; o[0] < out[0]; ++o[0]) {
      window(0);
      for (o[1] = 0; o[1] < out[1]; ++o[1]) {
        window(1);
        for (o[2] = 0; o[2] < out[2]; ++o[2]) {
          window(2);
          int64_t best = -1;
          T value{};
          for (int64_t a = begin[0]; a < end[0]; ++a) {
            for (int64_t b = begin[1]; b < end[1]; ++b) {
              for (int64_t c = begin[2]; c < end[2]; ++c) {
                const T x = from[a * in_step[0] + b * in_step[1] + c * in_step[2]];
                if (best >= 0 && !(x > value) && x == x) continue;
                value = x;
                best = (a * in[1] + b) * in[2] + c;
              }
            }
          }
          to[o[0] * out_step[0] + o[1] * out_step[1] + o[2] * out_step[2]] = value;
          where[o[0] * index_step[0] + o[1] * index_step[1] + o[2] * index_step[2]] = best;
        }
      }
    }
  }
};

TensorPair adaptive_max_pool(KernelRuntimeContext& ctx, const char* op, int n_spatial,
                             const Tensor& self, IntArrayRef output_size, Tensor& out,
                             Tensor& indices) {
  const TensorPair result(out, indices);
  const int64_t lead = self.dim() - n_spatial;
  int64_t sizes[kSpatial];
  if (!read_spatial_list(ctx, op, "output_size", output_size, n_spatial, 0, nullptr, sizes)) {
    return result;
  }
  ET_REQUIRE(ctx, lead == 1 || lead == 2, InvalidArgument, result,
             "%s: a tensor of rank %d or %d was expected; its shape is %s", op, n_spatial + 1,
             n_spatial + 2, ShapeText(self).c_str());
  ET_REQUIRE(
      ctx, out.scalar_type() == self.scalar_type() && indices.scalar_type() == ScalarType::Long,
      InvalidArgument, result, "%s: outputs of dtypes %s and Long were expected; found %s and %s",
      op, toString(self.scalar_type()), toString(out.scalar_type()),
      toString(indices.scalar_type()));
  Planes planes;
  Shape shape(self);
  for (int d = 0; d < n_spatial; ++d) {
    ET_REQUIRE(ctx, self.size(lead + d) > 0, InvalidArgument, result,
               "%s: shape %s has empty spatial dims", op, ShapeText(self).c_str());
    planes.in[kSpatial - n_spatial + d] = self.size(lead + d);
    planes.out[kSpatial - n_spatial + d] = sizes[d];
    shape.set(lead + d, sizes[d]);
  }
  if (!resize_out(ctx, op, out, shape) || !resize_out(ctx, op, indices, shape)) return result;
  if (out.numel() == 0) return result;
  Size steps = elements_of(out) * 4;  // of each element of a window: its place, NaN, the comparison
  for (int d = 0; d < kSpatial; ++d) steps *= planes.in[d] / planes.out[d] + 2;
  if (!require_affordable(ctx, op, steps, elements_of(self, out))) return result;
  const Layout a(self), b(out), i(indices);
  for (int d = 0; d < n_spatial; ++d) {
    planes.in_step[kSpatial - n_spatial + d] = a.strides[lead + d];
    planes.out_step[kSpatial - n_spatial + d] = b.strides[lead + d];
    planes.index_step[kSpatial - n_spatial + d] = i.strides[lead + d];
  }
  const int64_t channels = self.size(lead - 1), batch = lead == 2 ? self.size(0) : 1;
  const bool known = with_dtype(self.scalar_type(), [&](auto tag) {
    using T = StoredAs<decltype(tag)>;
    executorch::cpu::parallel_for(batch * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const auto plane = [&](const Layout& l) {
          return p % channels * l.strides[lead - 1] + (lead == 2 ? p / channels * l.strides[0] : 0);
        };
        planes.run(self.const_data_ptr<T>() + plane(a), out.mutable_data_ptr<T>() + plane(b),
                   indices.mutable_data_ptr<int64_t>() + plane(i));
      }
    });
  });
  ET_REQUIRE(ctx, known, InvalidArgument, result, "%s: not implemented for dtype %s", op,
             toString(self.scalar_type()));
  return result;
}

}  // namespace

TensorPair adaptive_max_pool2d_out(KernelRuntimeContext& ctx, const Tensor& self,
                                   IntArrayRef output_size, Tensor& out, Tensor& indices) {
  return adaptive_max_pool(ctx, "adaptive_max_pool2d.out", 2, self, output_size, out, indices);
}

TensorPair adaptive_max_pool3d_out(KernelRuntimeContext& ctx, const Tensor& self,
                                   IntArrayRef output_size, Tensor& out, Tensor& indices) {
  return adaptive_max_pool(ctx, "adaptive_max_pool3d.out", 3, self, output_size, out, indices);
}

namespace {
constexpr Kernel kAdaptiveMaxOps[] = {
    ET_OP("aten::adaptive_max_pool2d.out", adaptive_max_pool2d_out),
    ET_OP("aten::adaptive_max_pool3d.out", adaptive_max_pool3d_out),
};
}  // namespace

Span<const Kernel> adaptive_max_ops() {
  return kAdaptiveMaxOps;
}

}  // namespace torch::executor::native
