"""Nested containers as flat lists, under the public names of this extension.

These are PyTorch's functions. A tree spec's text, as it stands in a program's container types, is
written by `TreeSpec.to_str`, which this module adds, and read by `from_str`.
"""

from executorch.exir.torch_internals import (
    TreeSpec,
    broadcast_to_and_flatten,
    tree_flatten,
    tree_map,
    tree_unflatten,
    treespec_dumps,
    treespec_loads,
)
from executorch.exir.torch_internals import register_pytree_node as register_custom

from_str = treespec_loads
if not hasattr(TreeSpec, "to_str"):
    TreeSpec.to_str = treespec_dumps  # type: ignore[attr-defined]

__all__ = [
    "TreeSpec",
    "broadcast_to_and_flatten",
    "from_str",
    "register_custom",
    "tree_flatten",
    "tree_map",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
]
