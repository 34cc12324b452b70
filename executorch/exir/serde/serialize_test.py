import io
import json
import subprocess
import sys
import zipfile

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from executorch.exir import load, memory, save, to_edge
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


def test_a_file_of_torch_export_is_read():
    program = to_edge(torch.export.export(torch.nn.GELU(), (torch.ones(2),))).exported_program()
    file, extra = io.BytesIO(), {"note": ""}
    torch.export.save(program, file, extra_files={"note": "of torch"})
    file.seek(0)
    assert load(file, extra_files=extra).dialect == "EDGE"
    assert extra == {"note": "of torch"}


class Halves(torch.nn.Module):
    def forward(self, x):
        left, right = torch.split(x + 1, 2)
        return (left * right).view(-1) * 2, right, torch.topk(x, 1)[0]


def test_a_planned_program_survives_saving_and_runs(tmp_path):
    x = torch.randn(4, 3)
    manager = to_edge(torch.export.export(Halves(), (x,))).to_executorch()
    program, extra = manager.exported_program(), {"note": ""}
    save(program, tmp_path / "planned", extra_files={"note": "planned"})
    again = load(tmp_path / "planned", extra_files=extra)
    assert extra == {"note": "planned"}
    assert again.dialect == program.dialect
    given, read = (
        [n.args[-1] for n in p.graph.nodes if n.target in (memory.alloc, memory.view)]
        for p in (program, again)
    )
    assert read == given
    targets = [spec.target for spec in program.graph_signature.input_specs if spec.target]
    stored = {**program.state_dict, **program.constants}
    weights = [stored[target] for target in targets]
    for kept in (program, again):
        results = torch.fx.Interpreter(kept.graph_module).run(
            *weights, x, enable_io_processing=False
        )
        torch.testing.assert_close(tuple(results), Halves()(x))


def test_texts_of_memory_are_those_of_1_5_1():
    program = to_edge(torch.export.export(Halves(), (torch.ones(4, 3),))).to_executorch()
    text = json.loads(serialize(program.exported_program()).exported_program)
    nodes = text["graph_module"]["graph"]["nodes"]
    allocs = [node for node in nodes if node["target"] == "memory.alloc"]
    (several,) = [node for node in allocs if node["inputs"][0]["name"] == "alloc_list"]
    assert [i["arg"]["as_string"] for i in several["inputs"]] == ["(2, 3);7", "(2, 3);7"]
    assert len(several["outputs"]) == 2
    assert [i["arg"]["as_string"] for n in allocs for i in n["inputs"]].count("(4, 1);5") == 1
    (view,) = [node for node in nodes if node["target"] == "executorch.exir.memory.view"]
    assert view["inputs"][1] == {"name": "", "arg": {"as_ints": [-1]}}


def test_memory_of_no_known_type_is_damage():
    program = to_edge(torch.export.export(Halves(), (torch.ones(4, 3),))).to_executorch()
    artifact = serialize(program.exported_program())
    artifact.exported_program = artifact.exported_program.replace(b"(4, 1);5", b"(4, 1);99")
    with pytest.raises(ValueError, match="no serialized exported program"):
        deserialize(artifact)


class OfTwoBytes(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"ab", debug_handle_map={7: (1, 2)})


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
    assert all(m.meta["debug_handle_map"] == {7: (1, 2)} for m in lowered)


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


def test_a_fake_parameter_of_integers_is_read():
    codes = torch.nn.Parameter(torch.zeros(4, 8, dtype=torch.uint8), requires_grad=False)
    scales = torch.nn.Parameter(torch.ones(4))
    mode = FakeTensorMode()
    given = {"codes": mode.from_tensor(codes), "scales": mode.from_tensor(scales)}
    written = serialize_torch_artifact(given)
    assert b"executorch.exir.serde.export_serialize" in written
    read = deserialize_torch_artifact(written)
    assert all(isinstance(tensor, torch.nn.Parameter) for tensor in read.values())
    assert (read["codes"].dtype, read["codes"].requires_grad) == (torch.uint8, False)
    assert read["scales"].requires_grad


@pytest.fixture
def gelu() -> torch.export.ExportedProgram:
    return torch.export.export(torch.nn.GELU(), (torch.ones(2),))


def test_what_is_at_a_path_is_replaced_whole(gelu, tmp_path) -> None:
    path = tmp_path / "gelu.pt2"
    path.write_bytes(b"something longer" * 10**4)
    save(gelu, path, extra_files={"note": "of a path"})
    texts = {"note": ""}
    x = torch.randn(2)
    assert torch.equal(load(str(path), extra_files=texts).module()(x), torch.nn.GELU()(x))
    assert texts == {"note": "of a path"}
    assert [p.name for p in tmp_path.iterdir()] == ["gelu.pt2"]


_TOO_LARGE = """
import resource, sys, torch
from executorch.exir import save
program = torch.export.export(torch.nn.Linear(64, 64), (torch.ones(64),))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    save(program, sys.argv[1])
except OSError as error:
    assert error.filename == sys.argv[1], error
else:
    sys.exit("the limit was not reached")
"""


def test_a_full_disk_leaves_the_old_file(tmp_path) -> None:
    path = tmp_path / "linear.pt2"
    path.write_bytes(b"old")
    subprocess.run([sys.executable, "-c", _TOO_LARGE, path], check=True)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["linear.pt2"]


def _archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"found 0 bytes"),
        (b"ET12 and so on", r"found 14 bytes that begin with b'ET12 and': .* expected an archive"),
        (_archive("a", "b"), r"without serialized_constants.pt, .* it has \['a', 'b'\]"),
    ],
)
def test_a_file_that_is_no_program_is_named(content, message, tmp_path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"other.bin: .*{message}"):
        load(path)
    with path.open("rb") as file, pytest.raises(ValueError, match=f"other.bin: .*{message}"):
        load(file)
    with pytest.raises(ValueError, match=message):
        load(io.BytesIO(content))


def test_a_damaged_member_is_named(gelu, tmp_path) -> None:
    file = io.BytesIO()
    save(gelu, file)
    damaged = file.getvalue().replace(b"graph_module", b"graph_modale", 1)
    with pytest.raises(ValueError, match="Bad CRC-32 for file 'serialized_exported_program.json'"):
        load(io.BytesIO(damaged))


def test_a_text_that_is_not_there_is_named(gelu) -> None:
    file = io.BytesIO()
    save(gelu, file)
    with pytest.raises(ValueError, match="without extra_files/note;"):
        load(file, extra_files={"note": ""})
