import torch

from executorch.devtools.debug_format.et_schema import FXOperatorGraph, OperatorNode, ValueNode
from executorch.exir import to_edge


def test_a_graph_has_inputs_operators_and_outputs() -> None:
    class Net(torch.nn.Module):
        def forward(self, x, y):
            values, _ = torch.topk(torch.cat([x, y]), 2)
            return values, x.unsqueeze(1)

    program = to_edge(torch.export.export(Net(), (torch.ones(3), torch.ones(2)))).exported_program()
    base = FXOperatorGraph.gen_operator_graph(program.graph_module)
    inputs, forward, outputs = base.elements
    assert [g.graph_name for g in (base, inputs, forward, outputs)] == [
        "base",
        "inputs",
        "forward",
        "outputs",
    ]
    assert [(v.name, v.output_shapes) for v in inputs.elements] == [("x_", [[3]]), ("y_", [[2]])]
    operators = [e for e in forward.elements if isinstance(e, OperatorNode)]
    assert [(o.op, [n.name for n in o.inputs]) for o in operators] == [
        ("aten.cat.default", ["x_", "y_"]),
        ("aten.topk.default", ["aten_cat_default_", "k_0"]),
        ("aten.unsqueeze_copy.default", ["x_", "dim_1"]),
    ]
    constants = [e for e in forward.elements if isinstance(e, ValueNode)]
    assert [c.val for c in constants] == [2, 1]
    assert [o.metadata["debug_handle"] for o in operators] == [1, 2, 3]
    assert __file__ in operators[0].metadata["stack_trace"]
    (output,) = outputs.elements
    assert [n.name for n in output.inputs] == ["aten_topk_default_", "aten_unsqueeze_copy_default_"]
    assert output.output_shapes == [[2], [3, 1]]
    without = FXOperatorGraph.gen_operator_graph(program.graph_module, skip_stack_trace=True)
    assert all("stack_trace" not in (e.metadata or {}) for e in without.elements[1].elements)
