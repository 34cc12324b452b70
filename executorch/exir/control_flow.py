"""Branches and loops over tensors, which programs keep as such."""

from functorch.experimental.control_flow import cond, map

from executorch.exir.torch_internals import while_loop

__all__ = ["cond", "map", "while_loop"]
