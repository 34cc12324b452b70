/// Walking a tensor along one dim at the positions that an index tensor of the same rank gives:
/// gather and the scatters.
#pragma once

#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>

namespace torch::executor::native::internal {

[[nodiscard]] inline bool require_same_dtype(KernelRuntimeContext& ctx, const char* op,
                                             const Tensor& self, const Tensor& other,
                                             const char* what) {
  ET_REQUIRE(ctx, self.scalar_type() == other.scalar_type(), InvalidArgument, false,
             "%s: %s has dtype %s; that of the input, %s, was expected", op, what,
             toString(other.scalar_type()), toString(self.scalar_type()));
  return true;
}

/// A loop over the elements of `index`, which are positions along `dim` of `data`. `other` has the
/// shape of the index.
struct AlongDim {
  Loop loop;
  int64_t dim = 0;
  int64_t extent = 0;
  int64_t step = 0;

  AlongDim(const Tensor& index, int64_t along, const Layout& data, const Layout& other)
      : AlongDim(at_least_1d(index), along, data, other) {}
  AlongDim(const Layout& index, int64_t along, const Layout& data, const Layout& other)
      : loop(index.shape), dim(along), extent(data.shape[along]), step(data.strides[along]) {
    Layout fixed = data;
    fixed.strides[dim] = 0;
    loop.add(index.strides).add(fixed.strides).add(other.strides);
  }

  // Calls f(offset into data, offset into other) for every element of the index. Returns false if
  // an element is out of range.
  template <class F>
  bool visit(KernelRuntimeContext& ctx, const char* op, const Tensor& index, F&& f) const {
    const IndexValues values(index);
    const int inner = loop.ndim - 1;
    const int64_t step0 = loop.strides[0][inner], step1 = loop.strides[1][inner];
    const int64_t step2 = loop.strides[2][inner];
    bool valid = true;
    int64_t position = 0;
    for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
      for (int64_t i = 0; valid && i < n; ++i, ++position) {
        const int64_t at = values[offsets[0] + i * step0];
        if (at < 0 || at >= extent) [[unlikely]] {
          fail_index(ctx, op, at, position, 0, extent, dim);
          valid = false;
          return;
        }
        f(offsets[1] + i * step1 + at * step, offsets[2] + i * step2);
      }
    });
    return valid;
  }
};

/// other = data at the positions of `index`, of elements of `element_size` bytes; the pointers are
/// to the first element of each. Returns the first position of a bad index, for which some element
/// of data was taken.
std::optional<int64_t> gather_along(const AlongDim& along, size_t element_size, const void* data,
                                    ScalarType index_type, const void* index, void* other);

/// Checks that the index has the rank of `self` and is in no dim larger, except along `dim` if
/// `any_along`.
[[nodiscard]] inline bool require_index_shape(KernelRuntimeContext& ctx, const char* op,
                                              const Tensor& self, const char* what,
                                              const Tensor& index, int64_t dim, bool any_along) {
  const Shape a = at_least_1d(self).shape, b = at_least_1d(index).shape;
  bool fits = a.ndim() == b.ndim();
  for (int64_t d = 0; fits && d < a.ndim(); ++d) fits = (any_along && d == dim) || b[d] <= a[d];
  ET_REQUIRE(ctx, fits, InvalidArgument, false,
             "%s: index of shape %s does not fit %s of shape %s along dim %" PRId64, op,
             ShapeText(index).c_str(), what, ShapeText(self).c_str(), dim);
  return true;
}

}  // namespace torch::executor::native::internal
