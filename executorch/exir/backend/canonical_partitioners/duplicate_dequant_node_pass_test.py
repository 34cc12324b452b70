import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401
from torch.export import export

from executorch.exir import to_edge
from executorch.exir.backend.canonical_partitioners.duplicate_dequant_node_pass import (
    DuplicateDequantNodePass,
)


class Shared(torch.nn.Module):
    def forward(self, q):
        y = torch.ops.quantized_decomposed.dequantize_per_tensor(q, 0.5, 3, -128, 127, torch.int8)
        return y.relu(), y + y, y


def test_every_reader_has_a_dequantization_of_its_own():
    q = torch.randint(-128, 127, (4,), dtype=torch.int8)
    program = to_edge(export(Shared(), (q,))).exported_program()
    result = DuplicateDequantNodePass()(program.graph_module)
    assert result.modified
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    dequantizations = [n for n in calls if "dequantize" in str(n.target)]
    assert len(dequantizations) == 3
    assert all(len(n.users) == 1 for n in dequantizations)
    assert all(n.meta["val"].dtype is torch.float32 for n in dequantizations)
    for got, want in zip(program.graph_module(q), Shared()(q), strict=True):
        assert torch.equal(got, want)
    assert not DuplicateDequantNodePass()(program.graph_module).modified
