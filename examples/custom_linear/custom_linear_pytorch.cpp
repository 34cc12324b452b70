// The same operator for PyTorch: a functional variant for models, an out variant for the exporter.
#include "custom_linear.h"

#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>
#include <torch/library.h>

namespace {

at::Tensor empty_result(const at::Tensor& weight, const at::Tensor& input,
                        const std::optional<at::Tensor>&) {
  auto sizes = input.sym_sizes().vec();
  sizes.back() = weight.sym_size(0);
  return at::empty_symint(sizes, input.options());
}

at::Tensor custom_linear(const at::Tensor& weight, const at::Tensor& input,
                         const std::optional<at::Tensor>& bias) {
  at::Tensor out = empty_result(weight, input, bias);
  WRAP_TO_ATEN(custom_linear_out, 3)(weight, input, bias, out);
  return out;
}

}  // namespace

TORCH_LIBRARY(myop, m) {
  m.def("custom_linear(Tensor weight, Tensor input, Tensor? bias) -> Tensor");
  m.def(
      "custom_linear.out(Tensor weight, Tensor input, Tensor? bias, *, Tensor(a!) out) -> "
      "Tensor(a!)");
}

TORCH_LIBRARY_IMPL(myop, CPU, m) {
  m.impl("custom_linear", custom_linear);
  m.impl("custom_linear.out", WRAP_TO_ATEN(custom_linear_out, 3));
}

// What export needs to know: the result's shape and type.
TORCH_LIBRARY_IMPL(myop, Meta, m) {
  m.impl("custom_linear", empty_result);
}
