"""Inside XNNPACK's delegates: every operation agrees with PyTorch on its own operands, and a wrong
one is found by its name, its operators and their line."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from executorch.backends.xnnpack import reference
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import Inspector
from executorch.devtools.parity import Suspect, check_parity
from executorch.devtools.parity.replay import Replay
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from tests.interop.xnnpack_cases import CASES, export


def replayed(data: bytes, inputs: tuple[Any, ...]) -> tuple[list[Suspect], Replay]:
    replay = Replay.of(data, "forward")
    method = Runtime.get().load_program(data).load_method("forward")
    return list(replay.suspects(method._method, inputs)), replay


@pytest.mark.parametrize("name", CASES)
def test_every_operation_agrees(name: str, tmp_path: Path) -> None:
    export(name, tmp_path)
    inputs = torch.load(tmp_path / f"{name}.pt", weights_only=False)[0][0]
    suspects, replay = replayed((tmp_path / f"{name}.pte").read_bytes(), inputs)
    assert [str(s) for s in suspects] == []
    assert any(name[0].isupper() for name in replay.checked), replay.unchecked
    inside = {kind for kind in replay.unchecked if kind[0].isupper()}
    assert inside <= {"ArgMaxPooling2d"}, replay.unchecked


class Net(nn.Module):
    """float [t, 8] to [t, 4]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.first(x))
        return torch.softmax(self.last(y), -1)


def lowered(model: nn.Module, inputs: tuple[Tensor, ...]) -> bytes:
    exported = torch.export.export(model, inputs)
    return (
        to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
        .to_executorch()
        .buffer
    )


def test_a_wrong_operation_is_found_by_name_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's tanh is bent, so the delegate's is the one that looks broken."""
    model, inputs = Net(), (torch.randn(3, 8),)
    data = lowered(model, inputs)
    monkeypatch.setitem(reference._FUNCTIONS, "Tanh", lambda f: lambda a: [torch.tanh(a[0]) * 1.01])
    model.last.bias.data[0] += 1  # so that the outputs differ as well
    report = check_parity(data, model, inputs)
    assert not report.passed
    assert len(report.suspects) == 1
    suspect = report.suspects[0]
    assert suspect.operator.startswith("XnnpackBackend Tanh #1")
    assert "aten::tanh" in suspect.operator
    lines, first = inspect.getsourcelines(Net.forward)
    line = first + next(i for i, text in enumerate(lines) if "tanh" in text)
    assert f"delegates_test.py:{line}" in suspect.place


def test_traces_have_each_operations_work_and_values(tmp_path: Path) -> None:
    model, inputs = Net(), (torch.randn(3, 8),)
    program = Runtime.get().load_program(
        lowered(model, inputs), enable_etdump=True, debug_buffer_size=1 << 16
    )
    outputs = program.load_method("forward").execute(inputs)
    dump, values = tmp_path / "run.etdp", tmp_path / "run.values"
    program.write_etdump_result_to_file(str(dump), str(values))
    inspector = Inspector(
        str(dump),
        debug_buffer_path=str(values),
        delegate_metadata_parser=lambda said: json.loads(bytes(said[0])),
    )
    events = {e.name: e for e in inspector.event_blocks[-1].events if e.is_delegated_op}
    table = inspector.to_dataframe(include_delegate_debug_data=True)
    layer = table[table.event_name == "FullyConnected #0"].iloc[0]
    assert (layer.family, layer.flop) == ("matmul", 2 * 3 * 8 * 8)
    assert layer.bytes == 4 * (3 * 8 + 8 * 8 + 8 + 3 * 8)
    assert layer.shapes == "Float[3,8] Float[8,8] Float[8] -> Float[3,8]"
    torch.testing.assert_close(events["FullyConnected #0"].debug_data[0], model.first(inputs[0]))
    assert torch.equal(events["Softmax #3"].debug_data[0], outputs[0])
