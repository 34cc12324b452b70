/// Linking this file (its symbol is named by the target quantized_ops_lib) registers every
/// quantized kernel before main.
#include <executorch/kernels/portable/own_kernels.h>
#include <executorch/kernels/quantized/tables.h>

namespace {

int add_all() {
#define ET_ADD_FAMILY(family, work)                                                           \
  static torch::executor::native::OwnKernels family{torch::executor::native::family##_ops()}; \
  torch::executor::native::register_own_kernels(family, "quantized_ops_lib");
  ET_QUANTIZED_FAMILIES(ET_ADD_FAMILY)
#undef ET_ADD_FAMILY
  return 1;
}

}  // namespace

extern "C" int et_quantized_ops_registered;
int et_quantized_ops_registered = add_all();
