// The kernels that custom_ops.yaml names. Each adds a constant of its own, so that results tell
// which one ran.
#include <executorch/runtime/kernel/kernel_includes.h>

namespace selective::native {

using executorch::aten::Tensor;
using executorch::runtime::KernelRuntimeContext;

namespace {

template <class T>
Tensor& scale(const Tensor& x, double factor, double offset, Tensor& out) {
  for (ssize_t i = 0; i < x.numel(); ++i) {
    out.mutable_data_ptr<T>()[i] =
        static_cast<T>(static_cast<double>(x.const_data_ptr<T>()[i]) * factor + offset);
  }
  return out;
}

}  // namespace

Tensor& scale_out(KernelRuntimeContext&, const Tensor& x, double factor, Tensor& out);
Tensor& scale_out(KernelRuntimeContext&, const Tensor& x, double factor, Tensor& out) {
  return x.scalar_type() == executorch::aten::ScalarType::Double
             ? scale<double>(x, factor, 100, out)
             : scale<float>(x, factor, 100, out);
}

Tensor& scale_float_2d_out(KernelRuntimeContext&, const Tensor& x, double factor, Tensor& out);
Tensor& scale_float_2d_out(KernelRuntimeContext&, const Tensor& x, double factor, Tensor& out) {
  return scale<float>(x, factor, 200, out);
}

}  // namespace selective::native
