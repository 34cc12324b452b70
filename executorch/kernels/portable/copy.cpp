#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>

// Copies of whole tensors: clones, dtype conversions, dim orders, between host and device.
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::DeviceAllocator;

namespace {

// out = self, of the same shape; dtypes and dim orders may differ.
bool copy_converting(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out) {
  ET_REQUIRE(ctx, convertible(self.scalar_type(), out.scalar_type()), InvalidArgument, false,
             "%s: cannot convert dtype %s to %s", op, toString(self.scalar_type()),
             toString(out.scalar_type()));
  if (!resize_out(ctx, op, out, self.sizes())) return false;
  if (self.const_data_ptr() == out.const_data_ptr() && same_layout(self, out) &&
      self.scalar_type() == out.scalar_type()) {
    return true;
  }
  copy_layout(self.const_data_ptr(), self.scalar_type(), Layout(self), out.mutable_data_ptr(),
              out.scalar_type(), Layout(out));
  return true;
}

Tensor& copy_same(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out) {
  copy_view(ctx, op, self, Layout(self), out);
  return out;
}

// out = self, if one of them is on a device, whose allocator copies the bytes. Both must have the
// same dim order.
Tensor& copy_across(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
                    bool to_device) {
  const executorch::aten::Device device = to_device ? out.device() : self.device();
  const executorch::aten::Device host = to_device ? self.device() : out.device();
  if (device.is_cpu() && host.is_cpu()) return copy_same(ctx, op, self, out);
  ET_REQUIRE(ctx, host.is_cpu() && !device.is_cpu(), InvalidArgument, out,
             "%s: self is on a device of type %d and out on one of type %d; %s", op,
             static_cast<int>(self.device_type()), static_cast<int>(out.device_type()),
             to_device ? "self must be in the host's memory" : "out must be in the host's memory");
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: out has dtype %s; that of self, %s, was expected", op,
             toString(out.scalar_type()), toString(self.scalar_type()));
  if (!resize_out(ctx, op, out, self.sizes())) return out;
  ET_REQUIRE(ctx, same_layout(self, out), InvalidArgument, out,
             "%s: self and out of shape %s have different dim orders", op, ShapeText(self).c_str());
  DeviceAllocator* allocator = executorch::runtime::get_device_allocator(device.type());
  ET_REQUIRE(ctx, allocator != nullptr, NotFound, out,
             "%s: no allocator is registered for devices of type %d", op,
             static_cast<int>(device.type()));
  if (self.nbytes() == 0) return out;
  const Error error =
      to_device ? allocator->copy_host_to_device(out.mutable_data_ptr(), self.const_data_ptr(),
                                                 self.nbytes(), device.index())
                : allocator->copy_device_to_host(out.mutable_data_ptr(), self.const_data_ptr(),
                                                 self.nbytes(), device.index());
  if (error != Error::Ok) {
    ET_LOG(Error, "%s: the device's allocator cannot copy %zu bytes: 0x%x", op, self.nbytes(),
           static_cast<unsigned>(error));
    ctx.fail(error);
  }
  return out;
}

// Checks the requested memory format. Kernels get only two of them, and the exporter has already
// applied the format to out's dim order.
bool require_format(KernelRuntimeContext& ctx, const char* op,
                    const std::optional<MemoryFormat>& format) {
  ET_REQUIRE(ctx,
             !format.has_value() || *format == MemoryFormat::Contiguous ||
                 *format == MemoryFormat::Preserve,
             InvalidArgument, false,
             "%s: memory_format must be contiguous or preserve; the value is %d", op,
             static_cast<int>(*format));
  return true;
}

bool require_dim_order(KernelRuntimeContext& ctx, const char* op,
                       const std::optional<IntArrayRef>& dim_order, const Tensor& out) {
  if (!dim_order.has_value()) return true;
  bool equal = static_cast<int64_t>(dim_order->size()) == out.dim();
  for (size_t d = 0; equal && d < dim_order->size(); ++d) {
    equal = out.dim_order().data() == nullptr
                ? (*dim_order)[d] == static_cast<int64_t>(d)
                : (*dim_order)[d] == static_cast<int64_t>(out.dim_order()[d]);
  }
  ET_REQUIRE(ctx, equal, InvalidArgument, false,
             "%s: out of shape %s does not have the requested dim order %s", op,
             ShapeText(out).c_str(), ShapeText(*dim_order).c_str());
  return true;
}

// out = src broadcast to the shape of `self`.
bool copy_broadcast(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                    const Tensor& src, Tensor& out) {
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, false,
             "%s: out has dtype %s; that of self, %s, was expected", op,
             toString(out.scalar_type()), toString(self.scalar_type()));
  ET_REQUIRE(ctx, convertible(src.scalar_type(), out.scalar_type()), InvalidArgument, false,
             "%s: cannot convert dtype %s to %s", op, toString(src.scalar_type()),
             toString(out.scalar_type()));
  const int64_t lead = self.dim() - src.dim();
  bool fits = lead >= 0;
  for (int64_t d = 0; fits && d < src.dim(); ++d) {
    fits = src.size(d) == 1 || src.size(d) == self.size(lead + d);
  }
  ET_REQUIRE(ctx, fits, InvalidArgument, false, "%s: cannot broadcast %s to %s", op,
             ShapeText(src).c_str(), ShapeText(self).c_str());
  if (!resize_out(ctx, op, out, self.sizes())) return false;
  const Layout from(src);
  if (src.const_data_ptr() == out.const_data_ptr() && same_layout(src, out) &&
      src.scalar_type() == out.scalar_type()) {
    return true;
  }
  Layout view;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool repeats = d < lead || src.size(d - lead) == 1;
    view.push(self.size(d), repeats ? 0 : from.strides[d - lead]);
  }
  copy_layout(src.const_data_ptr(), src.scalar_type(), view, out.mutable_data_ptr(),
              out.scalar_type(), Layout(out));
  return true;
}

}  // namespace

Tensor& alias_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return copy_same(ctx, "alias_copy.out", self, out);
}
Tensor& detach_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return copy_same(ctx, "detach_copy.out", self, out);
}
Tensor& lift_fresh_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return copy_same(ctx, "lift_fresh_copy.out", self, out);
}
Tensor& _h2d_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return copy_across(ctx, "_h2d_copy.out", self, out, true);
}
Tensor& _d2h_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return copy_across(ctx, "_d2h_copy.out", self, out, false);
}

Tensor& clone_out(KernelRuntimeContext& ctx, const Tensor& self,
                  std::optional<MemoryFormat> memory_format, Tensor& out) {
  if (!require_format(ctx, "clone.out", memory_format)) return out;
  return copy_same(ctx, "clone.out", self, out);
}

Tensor& to_copy_out(KernelRuntimeContext& ctx, const Tensor& self, bool non_blocking,
                    std::optional<MemoryFormat> memory_format, Tensor& out) {
  (void)non_blocking;
  if (!require_format(ctx, "_to_copy.out", memory_format)) return out;
  copy_converting(ctx, "_to_copy.out", self, out);
  return out;
}

Tensor& _to_dim_order_copy_out(KernelRuntimeContext& ctx, const Tensor& self, bool non_blocking,
                               std::optional<IntArrayRef> dim_order, Tensor& out) {
  (void)non_blocking;
  if (!require_dim_order(ctx, "_to_dim_order_copy.out", dim_order, out)) return out;
  copy_converting(ctx, "_to_dim_order_copy.out", self, out);
  return out;
}

Tensor& _clone_dim_order_out(KernelRuntimeContext& ctx, const Tensor& self, bool non_blocking,
                             std::optional<IntArrayRef> dim_order, Tensor& out) {
  (void)non_blocking;
  if (!require_dim_order(ctx, "_clone_dim_order.out", dim_order, out)) return out;
  return copy_same(ctx, "_clone_dim_order.out", self, out);
}

Tensor& _empty_dim_order_out(KernelRuntimeContext& ctx, IntArrayRef size,
                             std::optional<IntArrayRef> dim_order, Tensor& out) {
  if (!require_dim_order(ctx, "_empty_dim_order.out", dim_order, out)) return out;
  Shape shape;
  if (!shape_of(ctx, "_empty_dim_order.out", size, shape)) return out;
  (void)resize_out(ctx, "_empty_dim_order.out", out, shape);
  return out;
}

Tensor& copy_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& src,
                 bool non_blocking, Tensor& out) {
  (void)non_blocking;
  copy_broadcast(ctx, "copy.out", self, src, out);
  return out;
}

Tensor& copy_(KernelRuntimeContext& ctx, Tensor& self, const Tensor& src, bool non_blocking) {
  (void)non_blocking;
  copy_broadcast(ctx, "copy_", self, src, self);
  return self;
}

namespace {
constexpr Kernel kCopyOps[] = {
    ET_OP("aten::_to_copy.out", to_copy_out),
    ET_OP("aten::alias_copy.out", alias_copy_out),
    ET_OP("aten::clone.out", clone_out),
    ET_OP("aten::copy.out", copy_out),
    ET_OP("aten::copy_", copy_),
    ET_OP("aten::detach_copy.out", detach_copy_out),
    ET_OP("aten::lift_fresh_copy.out", lift_fresh_copy_out),
    ET_OP("dim_order_ops::_clone_dim_order.out", _clone_dim_order_out),
    ET_OP("dim_order_ops::_empty_dim_order.out", _empty_dim_order_out),
    ET_OP("dim_order_ops::_to_dim_order_copy.out", _to_dim_order_copy_out),
    ET_OP("et_copy::_d2h_copy.out", _d2h_copy_out),
    ET_OP("et_copy::_h2d_copy.out", _h2d_copy_out),
};
}  // namespace

Span<const Kernel> copy_ops() {
  return kCopyOps;
}

}  // namespace torch::executor::native
