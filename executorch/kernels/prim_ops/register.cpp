/// Linking this file (its symbol is named by the target executorch) registers the prim operators
/// before main.
#include <executorch/kernels/prim_ops/tables.h>
#include <executorch/runtime/platform/log.h>

namespace {

using executorch::runtime::Error;

int add_all() {
  for (auto table :
       {torch::executor::function::symbolic_ops, torch::executor::function::tensor_ops}) {
    const Error error = executorch::runtime::register_kernels(table(), "the prim operators");
    if (error != Error::Ok) {
      ET_LOG(Error, "prim ops: registration failed: %s", executorch::runtime::to_string(error));
    }
  }
  return 1;
}

}  // namespace

extern "C" int et_prim_ops_registered;
int et_prim_ops_registered = add_all();
