from __future__ import annotations

from typing import Any

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch.exir.passes.merge_common_subexpressions import MergeCommonSubexpressions


class CSEPass(PassBase):
    """`MergeCommonSubexpressions` under its public name, then without what nothing reads.

    Before    a = f(x, 2); b = f(x, 2); y = g(a, b)
    After     a = f(x, 2); y = g(a, a)
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        merged: Any = MergeCommonSubexpressions()(graph_module)
        if merged.modified:
            graph_module.graph.eliminate_dead_code()
            graph_module.recompile()
        return PassResult(graph_module, merged.modified)
