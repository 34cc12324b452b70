from __future__ import annotations

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from executorch.exir.graph_module import all_graph_modules


def dead_code_elimination_pass(graph_module: GraphModule) -> PassResult:
    """Remove calls whose results nothing reads, in sub-graphs of control flow too; in place."""
    modified = False
    for module in all_graph_modules(graph_module):
        if module.graph.eliminate_dead_code():
            module.recompile()
            modified = True
    return PassResult(graph_module, modified)
