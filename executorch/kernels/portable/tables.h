/// The operator tables of the portable kernels, one per family: the file <family>.cpp ends with its
/// table and defines <family>_ops().
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

// The list of families, each with the rule by which the profiler counts the work of its operators
// (devtools/profiler/work_rules.cpp). This header and register.cpp expand it.
#define ET_PORTABLE_FAMILIES(_) \
  _(elementwise, elementwise)   \
  _(bitwise, elementwise)       \
  _(compare, elementwise)       \
  _(unary, elementwise)         \
  _(reduce, reduction)          \
  _(extreme, reduction)         \
  _(softmax, softmax)           \
  _(norm, norm)                 \
  _(matmul, matmul)             \
  _(conv, convolution)          \
  _(pool, window)               \
  _(shape, copy)                \
  _(copy, copy)                 \
  _(cat, copy)                  \
  _(pad, copy)                  \
  _(index, copy)                \
  _(gather, select)             \
  _(masked, other)              \
  _(create, copy)               \
  _(sort, reduction)            \
  _(glu, elementwise)           \
  _(complex, other)             \
  _(scan, reduction)            \
  _(scatter, copy)              \
  _(resize, elementwise)        \
  _(grid, elementwise)          \
  _(distance, other)            \
  _(fft, other)                 \
  _(fold, other)                \
  _(embedding_bag, other)       \
  _(adaptive_max, pool)         \
  _(gradient, other)            \
  _(special, elementwise)       \
  _(search, other)              \
  _(gamma, other)               \
  _(unique, other)              \
  _(linalg, other)

namespace torch::executor::native {

#define ET_DECLARE_FAMILY(family, work) Span<const Kernel> family##_ops();
ET_PORTABLE_FAMILIES(ET_DECLARE_FAMILY)
#undef ET_DECLARE_FAMILY

}  // namespace torch::executor::native
