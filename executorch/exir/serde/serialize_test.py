import io

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from executorch.exir import load, save, to_edge
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.lowered_backend_module import get_lowered_backend_modules
from executorch.exir.serde.export_serialize import (
    _CURRENT_DESERIALIZER,
    GraphModuleDeserializer,
    deserialize_torch_artifact,
    serialize_torch_artifact,
)
from executorch.exir.serde.serialize import SerializedArtifact, deserialize, serialize


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


class OfTwoBytes(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"ab")


class Activations(Partitioner):
    def partition(self, program) -> PartitionResult:
        for node in program.graph.nodes:
            if "gelu" in node.name:
                node.meta["delegation_tag"] = "t"
        return PartitionResult(program, {"t": DelegationSpec("OfTwoBytes", [])})


@pytest.mark.parametrize("stage", ["aten", "edge", "delegated"])
def test_a_program_survives_as_bytes(stage):
    model, x = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.GELU()), torch.randn(4, 2)
    shapes = ({0: torch.export.Dim("n", max=9)},)
    program = torch.export.export(model, (x,), dynamic_shapes=shapes)
    if stage != "aten":
        program = to_edge(program).exported_program()
    if stage == "delegated":
        program = to_edge(torch.export.export(model, (x,))).to_backend(Activations())
        program = program.exported_program()
    artifact = serialize(program)
    again = deserialize(artifact)
    assert again.dialect == program.dialect
    assert [n.name for n in again.graph.nodes] == [n.name for n in program.graph.nodes]
    torch.testing.assert_close(again.module()(x), model(x))
    lowered = get_lowered_backend_modules(again.graph_module)
    assert [m.processed_bytes for m in lowered] == [b"ab"] * (stage == "delegated")


def test_damaged_text_is_refused():
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    good = serialize(program)
    with pytest.raises(ValueError):
        deserialize(SerializedArtifact(b"{}", good.state_dict, good.constants, good.example_inputs))


def test_fake_tensors_keep_shape_and_type_and_join_the_current_mode() -> None:
    given = FakeTensorMode().from_tensor(torch.empty(4, 8, dtype=torch.float16))
    written = serialize_torch_artifact({"w": given, "x": torch.arange(3)})
    reader = GraphModuleDeserializer()
    reader.fake_tensor_mode = FakeTensorMode()
    _CURRENT_DESERIALIZER.append(reader)
    try:
        read = deserialize_torch_artifact(written)
    finally:
        _CURRENT_DESERIALIZER.pop()
    assert read["w"].fake_mode is reader.fake_tensor_mode
    assert (read["w"].shape, read["w"].dtype) == ((4, 8), torch.float16)
    assert torch.equal(read["x"], torch.arange(3))
    assert deserialize_torch_artifact(serialize_torch_artifact(None)) == {}
