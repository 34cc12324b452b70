"""Imported before what imports PyTorch."""

from executorch.exir._needs_torch import need_torch

need_torch("executorch.export")
