"""The former name of `executorch.exir.passes.quantized_ops_registry`."""

import sys

from executorch.exir.passes import quantized_ops_registry

sys.modules[__name__] = quantized_ops_registry
