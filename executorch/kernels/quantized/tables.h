/// The operator tables of the quantized kernels, one per family: each file ends with its own.
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

// As in kernels/portable/tables.h.
#define ET_QUANTIZED_FAMILIES(_) \
  _(quantize, elementwise)       \
  _(dequantize, elementwise)     \
  _(choose_qparams, reduction)   \
  _(quantized_embedding, select) \
  _(mixed, matmul)               \
  _(quantized_add, elementwise)

namespace torch::executor::native {

#define ET_DECLARE_FAMILY(family, work) Span<const Kernel> family##_ops();
ET_QUANTIZED_FAMILIES(ET_DECLARE_FAMILY)
#undef ET_DECLARE_FAMILY

}  // namespace torch::executor::native
