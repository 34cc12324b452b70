/// The operator tables of this folder, one per family: each file ends with its own.
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

#define ET_LLM_FAMILIES(_) _(update_cache) _(sdpa) _(moe) _(hadamard) _(tile_crop) _(fallback)

namespace torch::executor::native {

#define ET_DECLARE_FAMILY(family) \
  executorch::runtime::Span<const executorch::runtime::Kernel> family##_ops();
ET_LLM_FAMILIES(ET_DECLARE_FAMILY)
#undef ET_DECLARE_FAMILY

}  // namespace torch::executor::native
