import io

import torch

from executorch.exir import load, save, to_edge


def test_edge_program_survives_saving():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.GELU())
    x = torch.randn(4, 2)
    shapes = ({0: torch.export.Dim("n", max=9)},)
    manager = to_edge(torch.export.export(model, (x,), dynamic_shapes=shapes))
    file = io.BytesIO()
    save(manager.exported_program(), file)
    file.seek(0)
    program = load(file)
    assert program.dialect == "EDGE"
    names = [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]
    assert "aten.gelu.default" in names
    x = torch.randn(7, 2)
    torch.testing.assert_close(program.module()(x), model(x))
