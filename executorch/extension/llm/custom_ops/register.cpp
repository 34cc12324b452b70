/// Linking this file (its symbol is named by the target custom_ops) registers the operators of
/// language models before main.
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/runtime/platform/log.h>

namespace {

using executorch::runtime::Error;
using executorch::runtime::Kernel;
using executorch::runtime::Span;

void add(Span<const Kernel> kernels) {
  const Error error = executorch::runtime::register_kernels(kernels, "custom_ops");
  if (error != Error::Ok) {
    ET_LOG(Error, "operators of language models: registration failed: %s",
           executorch::runtime::to_string(error));
  }
}

int add_all() {
#define ET_ADD_FAMILY(family) add(torch::executor::native::family##_ops());
  ET_LLM_FAMILIES(ET_ADD_FAMILY)
#undef ET_ADD_FAMILY
  return 1;
}

}  // namespace

extern "C" int et_llm_ops_registered;
int et_llm_ops_registered = add_all();
