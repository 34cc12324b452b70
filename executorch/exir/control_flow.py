"""Branches and loops over tensors, which programs keep as such."""

from functorch.experimental.control_flow import cond, map

__all__ = ["cond", "map"]
