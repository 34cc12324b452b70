from __future__ import annotations

from collections.abc import Set
from typing import Any

from torch.fx import Node

from executorch.exir.passes.merge_common_subexpressions import MergeCommonSubexpressions


class FuseDuplicateUsersPass(MergeCommonSubexpressions):
    """`MergeCommonSubexpressions` but of some operators.

    excluded_targets  operators whose calls a backend needs apart
    """

    def __init__(self, excluded_targets: Set[Any] | None = None) -> None:
        super().__init__()
        self.excluded_targets = excluded_targets or frozenset()

    def is_merged(self, node: Node) -> bool:
        return node.target not in self.excluded_targets
