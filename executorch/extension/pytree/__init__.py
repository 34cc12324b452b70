"""Nested containers as flat lists, under the public names of this extension.

These are PyTorch's functions. A tree spec's text, as it stands in a program's container types, is
written by `TreeSpec.to_str`, which this module adds, and read by `from_str`.
"""

from torch.utils import _pytree
from torch.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

broadcast_to_and_flatten = _pytree._broadcast_to_and_flatten
from_str = _pytree.treespec_loads
register_custom = _pytree._register_pytree_node

if not hasattr(TreeSpec, "to_str"):
    TreeSpec.to_str = _pytree.treespec_dumps  # type: ignore[attr-defined]

__all__ = [
    "TreeSpec",
    "broadcast_to_and_flatten",
    "from_str",
    "register_custom",
    "tree_flatten",
    "tree_map",
    "tree_unflatten",
]
