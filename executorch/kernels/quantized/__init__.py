"""Importing this package makes the operators of `quantized_decomposed` known to the exporter, which
does so itself where a program calls one."""

from executorch.exir.passes import quantized_ops_registry as quantized_ops_registry
