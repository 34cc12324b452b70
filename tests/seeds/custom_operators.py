"""Custom operators of the tutorials."""

from __future__ import annotations

from tests.seeds.row_types import CustomOperator, Cut

# The page leaves the computation out. Its result is [weight.size(1), input.size(1)], so its weight
# and input have the inner dimension first.
CALCULATION = """
  const auto k = weight.size(0), m = weight.size(1), n = input.size(1);
  const float* w = weight.const_data_ptr<float>();
  const float* x = input.const_data_ptr<float>();
  const float* b = bias.has_value() ? bias->const_data_ptr<float>() : nullptr;
  float* y = out.mutable_data_ptr<float>();
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) {
      y[i * n + j] = b == nullptr ? 0 : b[i];
      for (long l = 0; l < k; ++l) y[i * n + j] += w[l * m + i] * x[l * n + j];
    }
"""
_OPTIONAL = ("Tensor(?) bias", "Tensor? bias")
# Without a dispatch key the operator is traced through, and an exporter's tensors have no data.
_FOR_CPU = ('-> Tensor", custom_linear)', '-> Tensor", torch::dispatch(c10::kCPU, custom_linear))')
_KERNEL_BEFORE = '#include "custom_linear.h"'
_WRAPPER_BEFORE = "#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>"

CUSTOM_OPERATORS = (
    CustomOperator(
        "B",
        Cut(79, "B", 786, 788, "custom_linear(Tensor", corrects=(_OPTIONAL,)),
        Cut(
            80,
            "B",
            792,
            801,
            "// custom_linear.h",
            before=_KERNEL_BEFORE,
            corrects=(("// calculation", CALCULATION),),
            note="with the computation",
        ),
        (
            Cut(81, "B", 805, 819, "// custom_linear_pytorch.cpp", before=_WRAPPER_BEFORE),
            Cut(82, "B", 821, 825, "// Register", corrects=(_OPTIONAL, _FOR_CPU)),
        ),
        (Cut(84, "B", 831, 840, "def  replace_linear"),),
    ),
    CustomOperator(
        "D",
        Cut(79, "D", 542, 544, "custom_linear(Tensor", corrects=(_OPTIONAL,)),
        Cut(
            80,
            "D",
            549,
            559,
            "// custom_linear.h",
            before=_KERNEL_BEFORE,
            corrects=(("// calculation", CALCULATION),),
            note="with the computation",
        ),
        (
            Cut(81, "D", 565, 578, "// custom_linear_pytorch.cpp", before=_WRAPPER_BEFORE),
            Cut(82, "D", 580, 586, "// standard API", corrects=(_OPTIONAL, _FOR_CPU)),
        ),
        (
            Cut(
                83,
                "D",
                598,
                599,
                "import torch",
                corrects=(("libcustom_linear.so/dylib", "cmake-out/libcustom_linear.so"),),
            ),
            Cut(
                84,
                "D",
                612,
                621,
                "def  replace_linear",
                "0123444323",
                note="invalid as printed: the else belongs to the if",
            ),
        ),
    ),
)
