"""Importing this package makes the operators of `quantized_decomposed` known to the exporter, which
does so itself where a program calls one, and computes their out variants in eager mode where the
library for that, the target `quantized_ops_aot_lib`, was built."""

from pathlib import Path

import torch

from executorch.exir.passes import quantized_ops_registry as quantized_ops_registry

libs = [str(path) for path in Path(__file__).parent.glob("libquantized_ops_aot_lib.*")]
for _library in libs:
    torch.ops.load_library(_library)
