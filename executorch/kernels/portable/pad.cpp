#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/number.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Padding of the last dims. Pads are listed from the last dim backwards: (left, right, top, ...).
namespace torch::executor::native {

using namespace internal;

namespace {

bool require_same_dtype(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                        const Tensor& out) {
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, false,
             "%s: out has dtype %s; the input's dtype %s was expected", op,
             toString(out.scalar_type()), toString(self.scalar_type()));
  return true;
}

// The shape of self with pads added; false with a message for a negative extent, or a pad that is
// larger than any extent: sums and differences of pads and extents then fit int64.
bool padded_shape(KernelRuntimeContext& ctx, const char* op, const Tensor& self, IntArrayRef pad,
                  Shape& shape) {
  const int64_t n = static_cast<int64_t>(pad.size()) / 2;
  bool valid = pad.size() % 2 == 0 && n <= self.dim();
  shape = Shape(self);
  for (int64_t i = 0; valid && i < n; ++i) {
    const int64_t d = self.dim() - 1 - i;
    const int64_t left = pad[2 * i], right = pad[2 * i + 1];
    valid = std::min(left, right) >= -INT32_MAX && std::max(left, right) <= INT32_MAX;
    shape.set(d, Size(self.size(d)) + left + right);
  }
  ET_REQUIRE(ctx, valid && shape.ok(), InvalidArgument, false,
             "%s: shape %s cannot be padded by %s", op, ShapeText(self).c_str(),
             ShapeText(pad).c_str());
  return true;
}

}  // namespace

Tensor& constant_pad_nd_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef pad,
                            const Scalar& value, Tensor& out) {
  constexpr const char* kOp = "constant_pad_nd.out";
  Shape shape;
  if (!require_same_dtype(ctx, kOp, self, out) || !padded_shape(ctx, kOp, self, pad, shape) ||
      !resize_out(ctx, kOp, out, shape)) {
    return out;
  }
  ET_REQUIRE(ctx, is_number(out.scalar_type()), InvalidArgument, out,
             "%s: not implemented for dtype %s", kOp, toString(out.scalar_type()));
  const bool grows = std::any_of(pad.begin(), pad.end(), [](int64_t n) { return n > 0; });
  if (grows && !require_fits(ctx, kOp, "value", value, out.scalar_type())) return out;
  // Fill the parts before and behind the input's elements, from the outermost padded dim inwards.
  const Element element(value, out.scalar_type());
  Layout from(self), to(out);
  const auto fill_along = [&](int64_t d, int64_t begin, int64_t end) {
    Layout part = to, one;
    part.offset += begin * part.strides[d];
    part.shape.set(d, end - begin);
    one.shape = part.shape;  // with strides of 0
    copy_layout(element.bytes, out.scalar_type(), one, out.mutable_data_ptr(), out.scalar_type(),
                part);
  };
  for (int64_t i = static_cast<int64_t>(pad.size()) / 2 - 1; i >= 0; --i) {
    const int64_t d = self.dim() - 1 - i, left = pad[2 * i], right = pad[2 * i + 1];
    const int64_t extent = out.size(d), begin = std::clamp<int64_t>(left, 0, extent);
    const int64_t kept = std::max<int64_t>(
        self.size(d) + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0), 0);
    fill_along(d, 0, begin);
    fill_along(d, begin + kept, extent);
    from.offset += std::clamp<int64_t>(-left, 0, self.size(d)) * from.strides[d];
    to.offset += begin * to.strides[d];
    to.shape.set(d, kept);
  }
  copy_layout(self.const_data_ptr(), self.scalar_type(), from, out.mutable_data_ptr(),
              out.scalar_type(), to);
  return out;
}

namespace {

// Maps position `at` of the padded extent to the input position whose element it repeats.
using PadMap = int64_t (*)(int64_t at, int64_t extent);

int64_t reflect(int64_t at, int64_t extent) {
  if (at < 0) at = -at;
  return at < extent ? at : 2 * (extent - 1) - at;
}
int64_t replicate(int64_t at, int64_t extent) {
  return std::clamp<int64_t>(at, 0, extent - 1);
}

// One padded dim: the inside and the edges, each copied from where `map` points.
void pad_dims(const Tensor& self, Tensor& out, const Layout& from, const Layout& to,
              IntArrayRef pad, int64_t axis, PadMap map) {
  if (2 * axis == static_cast<int64_t>(pad.size())) {
    copy_layout(self.const_data_ptr(), self.scalar_type(), from, out.mutable_data_ptr(),
                out.scalar_type(), to);
    return;
  }
  const int64_t d = self.dim() - 1 - axis, extent = self.size(d), padded = out.size(d);
  const int64_t left = pad[2 * axis];
  const auto part = [&](int64_t src, int64_t dst, int64_t length) {
    if (length == 0) return;
    Layout a = from, b = to;
    a.shape.set(d, length);
    b.shape.set(d, length);
    a.offset += src * a.strides[d];
    b.offset += dst * b.strides[d];
    pad_dims(self, out, a, b, pad, axis + 1, map);
  };
  const int64_t begin = std::clamp<int64_t>(left, 0, padded);
  const int64_t end = std::clamp<int64_t>(left + extent, begin, padded);
  part(begin - left, begin, end - begin);
  for (int64_t i = 0; i < begin; ++i) part(map(i - left, extent), i, 1);
  for (int64_t i = end; i < padded; ++i) part(map(i - left, extent), i, 1);
}

// Pads a tensor from which no dim cuts anything off. Dims are padded from the last one outwards, so
// that an edge is a whole block of what has been written already.
void pad_outwards(const Tensor& self, Tensor& out, IntArrayRef pad, PadMap map) {
  const int64_t n = static_cast<int64_t>(pad.size()) / 2;
  Layout done(out);
  done.shape = Layout(self).shape;
  for (int64_t i = 0; i < n; ++i) done.offset += pad[2 * i] * done.strides[self.dim() - 1 - i];
  copy_layout(self.const_data_ptr(), self.scalar_type(), Layout(self), out.mutable_data_ptr(),
              out.scalar_type(), done);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = self.dim() - 1 - i, extent = self.size(d), left = pad[2 * i];
    const int64_t step = done.strides[d];
    const auto copy = [&](int64_t at) {  // counted from the input's first position
      Layout from = done, to = done;
      from.shape.set(d, 1);
      to.shape.set(d, 1);
      from.offset += map(at, extent) * step;
      to.offset += at * step;
      copy_layout(out.const_data_ptr(), out.scalar_type(), from, out.mutable_data_ptr(),
                  out.scalar_type(), to);
    };
    for (int64_t at = -left; at < 0; ++at) copy(at);
    for (int64_t at = extent; at < out.size(d) - left; ++at) copy(at);
    done.offset -= left * step;
    done.shape.set(d, out.size(d));
  }
}

Tensor& pad_mapped(KernelRuntimeContext& ctx, const char* op, const Tensor& self, IntArrayRef pad,
                   int64_t n_dims, PadMap map, Tensor& out) {
  ET_REQUIRE(ctx,
             static_cast<int64_t>(pad.size()) == 2 * n_dims &&
                 (self.dim() == n_dims + 1 || self.dim() == n_dims + 2),
             InvalidArgument, out,
             "%s: %" PRId64 " pads and a tensor of rank %" PRId64 " or %" PRId64
             " were expected; found pads %s and shape %s",
             op, 2 * n_dims, n_dims + 1, n_dims + 2, ShapeText(pad).c_str(),
             ShapeText(self).c_str());
  for (int64_t i = 0; i < n_dims; ++i) {
    const int64_t extent = self.size(self.dim() - 1 - i);
    const int64_t most = std::max(pad[2 * i], pad[2 * i + 1]);
    ET_REQUIRE(ctx, map == reflect ? most < extent : extent > 0, InvalidArgument, out,
               "%s: pads %s do not fit shape %s at dim %" PRId64, op, ShapeText(pad).c_str(),
               ShapeText(self).c_str(), self.dim() - 1 - i);
  }
  Shape shape;
  if (!require_same_dtype(ctx, op, self, out) || !padded_shape(ctx, op, self, pad, shape) ||
      !resize_out(ctx, op, out, shape)) {
    return out;
  }
  if (out.numel() == 0) return out;
  if (std::all_of(pad.begin(), pad.end(), [](int64_t p) { return p >= 0; })) {
    pad_outwards(self, out, pad, map);
  } else {
    pad_dims(self, out, Layout(self), Layout(out), pad, 0, map);
  }
  return out;
}

}  // namespace

#define ET_PAD(name, n_dims, map)                                                        \
  Tensor& name##_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef padding, \
                     Tensor& out) {                                                      \
    return pad_mapped(ctx, #name ".out", self, padding, n_dims, map, out);               \
  }
ET_PAD(reflection_pad1d, 1, reflect)
ET_PAD(reflection_pad2d, 2, reflect)
ET_PAD(reflection_pad3d, 3, reflect)
ET_PAD(replication_pad1d, 1, replicate)
ET_PAD(replication_pad2d, 2, replicate)
ET_PAD(replication_pad3d, 3, replicate)
#undef ET_PAD

namespace {
constexpr Kernel kPadOps[] = {
    ET_OP("aten::constant_pad_nd.out", constant_pad_nd_out),
    ET_OP("aten::reflection_pad1d.out", reflection_pad1d_out),
    ET_OP("aten::reflection_pad2d.out", reflection_pad2d_out),
    ET_OP("aten::reflection_pad3d.out", reflection_pad3d_out),
    ET_OP("aten::replication_pad1d.out", replication_pad1d_out),
    ET_OP("aten::replication_pad2d.out", replication_pad2d_out),
    ET_OP("aten::replication_pad3d.out", replication_pad3d_out),
};
}  // namespace

Span<const Kernel> pad_ops() {
  return kPadOps;
}

}  // namespace torch::executor::native
