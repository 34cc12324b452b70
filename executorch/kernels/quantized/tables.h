/// The operator tables of the quantized kernels, one per family: each file ends with its own.
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

#define ET_QUANTIZED_FAMILIES(_) \
  _(quantize)                    \
  _(dequantize)                  \
  _(choose_qparams)              \
  _(quantized_embedding)         \
  _(mixed)                       \
  _(quantized_add)

namespace torch::executor::native {

#define ET_DECLARE_FAMILY(family) Span<const Kernel> family##_ops();
ET_QUANTIZED_FAMILIES(ET_DECLARE_FAMILY)
#undef ET_DECLARE_FAMILY

}  // namespace torch::executor::native
