import torch

from executorch.exir import to_edge


def handles(module, *args):
    program = to_edge(torch.export.export(module, args)).exported_program()
    return {n.name: n.meta.get("debug_handle") for n in program.graph.nodes}


def test_parts_of_one_linear_share_a_handle():
    found = handles(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), torch.ones(1, 2))
    assert found["aten_permute_copy_default"] == found["aten_addmm_default"] == 1
    assert found["aten_relu_default"] == 2
    assert found["input"] is None and found["output"] is None


def test_sub_graphs_follow_the_graph_that_calls_them():
    class Branches(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    program = to_edge(torch.export.export(Branches(), (torch.ones(2),))).exported_program()
    outer = [n.meta["debug_handle"] for n in program.graph.nodes if n.op == "call_function"]
    inner = [
        n.meta["debug_handle"]
        for _, sub in program.graph_module.named_children()
        for n in sub.graph.nodes
        if n.op == "call_function"
    ]
    assert len(inner) == 2 and min(inner) >= 1 and len(set(outer + inner)) >= 4
