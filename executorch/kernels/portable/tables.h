/// The operator tables of the portable kernels, one per family: the file <family>.cpp ends with its
/// table and defines <family>_ops().
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

// Every family once; tables.h and register.cpp expand this list.
#define ET_PORTABLE_FAMILIES(_) \
  _(elementwise)                \
  _(bitwise)                    \
  _(compare)                    \
  _(unary)                      \
  _(reduce)                     \
  _(extreme)                    \
  _(softmax)                    \
  _(norm)                       \
  _(matmul)                     \
  _(conv)                       \
  _(pool)                       \
  _(shape)                      \
  _(copy)                       \
  _(cat)                        \
  _(pad)                        \
  _(index)                      \
  _(gather)                     \
  _(masked)                     \
  _(create)                     \
  _(sort)                       \
  _(glu)                        \
  _(complex)                    \
  _(scan)                       \
  _(scatter)                    \
  _(resize)                     \
  _(grid)                       \
  _(distance)                   \
  _(fft)                        \
  _(fold)                       \
  _(embedding_bag)              \
  _(adaptive_max)               \
  _(gradient)                   \
  _(special)                    \
  _(search)                     \
  _(gamma)                      \
  _(unique)                     \
  _(linalg)

namespace torch::executor::native {

#define ET_DECLARE_FAMILY(family) Span<const Kernel> family##_ops();
ET_PORTABLE_FAMILIES(ET_DECLARE_FAMILY)
#undef ET_DECLARE_FAMILY

}  // namespace torch::executor::native
