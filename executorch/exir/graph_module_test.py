"""Sub-graphs of control flow are found with the calls that use them."""

import torch

from executorch.exir import to_edge
from executorch.exir.control_flow import while_loop
from executorch.exir.graph_module import (
    get_cond_while_submodules,
    get_control_flow_submodules,
    get_scan_submodules,
)

_higher = torch.ops.higher_order


class Branches(torch.nn.Module):
    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        sums, _ = torch._higher_order_ops.scan(lambda c, r: (c + r, c * r), y[0], y)
        return sums


def test_the_call_comes_with_each_sub_graph():
    program = torch.export.export(Branches(), (torch.ones(2, 2),), strict=True)
    module = to_edge(program).exported_program().graph_module
    found = get_control_flow_submodules(module)
    assert [node.target for _, _, node in found] == [_higher.cond, _higher.cond, _higher.scan]
    for name, sub_graph, node in found:
        assert getattr(module, name) is sub_graph
        assert name in [str(a.target) for a in node.all_input_nodes]
    assert get_cond_while_submodules(module) == found[:2]
    assert get_scan_submodules(module) == found[2:]


def test_loops_of_the_public_module_are_control_flow():
    class Loop(torch.nn.Module):
        def forward(self, i, x):
            return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (i, x))

    program = to_edge(torch.export.export(Loop(), (torch.tensor(0), torch.ones(2))))
    found = get_cond_while_submodules(program.exported_program().graph_module)
    assert [node.target for _, _, node in found] == [_higher.while_loop] * 2
