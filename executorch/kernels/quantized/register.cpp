/// Linking this file (its symbol is named by the target quantized_ops_lib) registers every
/// quantized kernel before main.
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/platform/log.h>

namespace {

using executorch::runtime::Error;
using executorch::runtime::Kernel;
using executorch::runtime::Span;

void add(Span<const Kernel> kernels) {
  const Error error = executorch::runtime::register_kernels(kernels, "quantized_ops_lib");
  if (error != Error::Ok) {
    ET_LOG(Error, "quantized kernels: registration failed: %s",
           executorch::runtime::to_string(error));
  }
}

int add_all() {
#define ET_ADD_FAMILY(family, work) add(torch::executor::native::family##_ops());
  ET_QUANTIZED_FAMILIES(ET_ADD_FAMILY)
#undef ET_ADD_FAMILY
  return 1;
}

}  // namespace

extern "C" int et_quantized_ops_registered;
int et_quantized_ops_registered = add_all();
