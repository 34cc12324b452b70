"""Records hold what they were given, survive a file, and say what is wrong with a damaged one."""

from __future__ import annotations

import copy
import io
import json
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import ETRecord, generate_etrecord, parse_etrecord
from executorch.exir import to_edge, to_edge_transform_and_lower


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.seen.add_(1)
        y = torch.relu(self.linear(x)) + self.seen
        return torch.topk(y, 2).values, y.view(x.shape[0] * 2, -1)


X = torch.randn(3, 4)


@pytest.fixture(scope="module")
def exported() -> torch.export.ExportedProgram:
    return export(Net(), (X,), dynamic_shapes=({0: Dim("n", max=8)},))


def storages(program: torch.export.ExportedProgram) -> set[int]:
    return {t.untyped_storage().data_ptr() for t in program.state_dict.values()}


def calls(program: torch.export.ExportedProgram) -> list[tuple[str, str, object]]:
    return [
        (n.name, str(n.target), n.meta.get("debug_handle"))
        for n in program.graph.nodes
        if n.op == "call_function" and n.users
    ]


def test_a_record_survives_a_file(exported, tmp_path: Path) -> None:
    program = to_edge(exported, generate_etrecord=True).to_executorch()
    record = program.get_etrecord()
    record.update_representative_inputs([X])
    record.update_reference_outputs([[torch.ones(2)]])
    record.save(tmp_path / "r.etrecord")
    read = parse_etrecord(tmp_path / "r.etrecord")
    assert calls(read.edge_dialect_program) == calls(record.edge_dialect_program)
    assert calls(read.exported_program) == calls(exported)
    texts = {str(k): v for k, v in program.debug_handle_map["forward"].items()}
    assert read._debug_handle_map == {"forward": texts}
    assert read.export_graph_id == id(exported.graph)
    assert torch.equal(read._representative_inputs[0], X)
    assert torch.equal(read._reference_outputs["forward"][0][0], torch.ones(2))
    x = torch.randn(5, 4)
    again, before = read.exported_program.module()(x), exported.module()(x)
    assert all(map(torch.equal, again, before))


def test_taking_a_record_shares_the_weights(exported) -> None:
    manager = to_edge(exported, generate_etrecord=True)
    record = manager.to_executorch().get_etrecord()
    assert storages(record.exported_program) == storages(exported)
    weight = exported.state_dict["linear.weight"]
    recorded = record.edge_dialect_program.state_dict["linear.weight"]
    assert recorded.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()


def test_a_deep_copied_manager_keeps_its_state_and_shares_its_weights(exported) -> None:
    manager = to_edge(exported)
    kept = copy.deepcopy(manager)
    before = calls(kept.exported_program())
    manager.to_executorch()
    assert calls(manager.exported_program()) == before
    graph = manager.exported_program().graph
    graph.output_node().args = ((),)
    graph.eliminate_dead_code()
    assert calls(kept.exported_program()) == before != calls(manager.exported_program())
    assert storages(kept.exported_program()) == storages(copy.deepcopy(kept).exported_program())


def test_the_edge_program_is_recorded_before_delegation(exported) -> None:
    manager = to_edge_transform_and_lower(
        exported, partitioner=[XnnpackPartitioner()], generate_etrecord=True
    )
    record = manager.to_executorch().get_etrecord()
    assert "aten_linear_default" in {name for name, _, _ in calls(record.edge_dialect_program)}
    (entry,) = {e["name"] for e in record._delegate_map["forward"].values()}
    assert entry == "XnnpackBackend"


def test_the_graph_after_transform_passes_is_recorded(exported) -> None:
    def mark(graph_module: torch.fx.GraphModule) -> None:
        graph_module.graph.output_node().meta["marked"] = True

    manager = to_edge_transform_and_lower(exported, transform_passes=[mark], generate_etrecord=True)
    graphs = manager._etrecord.graph_map
    assert "marked" in graphs["edge_after_transform/forward"].graph.output_node().meta
    assert "marked" not in manager._etrecord.edge_dialect_program.graph.output_node().meta
    plain = to_edge_transform_and_lower(exported, generate_etrecord=True)
    assert plain._etrecord.graph_map is None


def test_a_record_without_every_map_survives_a_file(exported, tmp_path: Path) -> None:
    manager = to_edge(exported)
    program = manager.to_executorch()
    record = ETRecord(
        edge_dialect_program=manager.exported_program(),
        _debug_handle_map=program.debug_handle_map,
    )
    record.save(tmp_path / "r.etrecord")
    read = parse_etrecord(tmp_path / "r.etrecord")
    assert read._delegate_map is None and read._instruction_id_to_num_outs_map is None
    assert read._debug_handle_map["forward"]


def test_a_delegated_program_survives_a_file(exported) -> None:
    manager = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    kept, file = copy.deepcopy(manager), io.BytesIO()
    generate_etrecord(file, kept, manager.to_executorch())
    read = parse_etrecord(file).edge_dialect_program
    lowered = [m for _, m in kept.exported_program().graph_module.named_children()]
    found = [m for _, m in read.graph_module.named_children()]
    assert [m.processed_bytes for m in found] == [m.processed_bytes for m in lowered] != []
    assert found[0].named_data_store_output == lowered[0].named_data_store_output


def test_control_flow_and_several_methods_survive_a_file(tmp_path: Path) -> None:
    class Branches(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    methods = {"forward": export(Branches(), (X,)), "other": export(nn.ReLU(), (X,))}
    manager = to_edge(methods)
    path = tmp_path / "r"
    kept = copy.deepcopy(manager)
    generate_etrecord(
        path, kept, manager.to_executorch(), methods, {"aten": methods["other"], "again": kept}
    )
    read = parse_etrecord(path)
    assert set(read.edge_dialect_program) == {"forward", "other"}
    assert set(read.graph_map) == {"aten/forward", "again/forward", "again/other"}
    for x in (X, -X.abs()):
        found = read.edge_dialect_program["forward"].module()(x)
        torch.testing.assert_close(found, Branches()(x))


def test_a_bundled_program_gives_reference_outputs_and_inputs(exported) -> None:
    manager = to_edge(exported)
    case = SimpleNamespace(inputs=[X], expected_outputs=[torch.ones(1)])
    suite = SimpleNamespace(method_name="forward", test_cases=[case, case])
    kept = copy.deepcopy(manager)
    bundled = SimpleNamespace(
        executorch_program=manager.to_executorch(), method_test_suites=[suite]
    )
    record = ETRecord()
    record.add_edge_dialect_program(kept)
    record.add_executorch_program(bundled)
    assert record._representative_inputs == [X]
    assert record._reference_outputs == {"forward": [case.expected_outputs] * 2}


def test_what_is_added_twice_or_missing_is_refused(exported) -> None:
    record, manager = ETRecord(), to_edge(exported)
    with pytest.raises(RuntimeError, match="must contain edge dialect program"):
        record.save(io.BytesIO())
    record.add_edge_dialect_program(manager)
    with pytest.raises(RuntimeError, match="already exists"):
        record.add_edge_dialect_program(manager)
    with pytest.raises(RuntimeError, match="Exported program already exists"):
        ETRecord(export_graph_id=5).add_exported_program(exported)
    with pytest.raises(RuntimeError, match="reserved"):
        record.add_extra_export_modules({"exported_program": exported})
    with pytest.raises(RuntimeError, match="Unsupported type of executorch_program.*int"):
        record.add_executorch_program(5)
    with pytest.raises(RuntimeError, match="Unsupported type of extra_recorded_export_modules.*li"):
        record.add_extra_export_modules([exported])
    record.add_executorch_program(manager.to_executorch())
    with pytest.raises(TypeError, match="etrecord: expected a path or a binary file, got .*int"):
        record.save(5)
    with pytest.raises(RuntimeError, match="generate_etrecord=True"):
        manager.to_executorch().get_etrecord()


@pytest.fixture(scope="module")
def members(exported, tmp_path_factory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("record") / "r"
    to_edge(exported, generate_etrecord=True).to_executorch().get_etrecord().save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


EDGE = "edge_dialect_exported_program/forward"


def without_node_targets(text: bytes) -> bytes:
    fields = json.loads(text)
    del fields["graph_module"]["graph"]["nodes"][0]["target"]
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    "name, damage, error, message",
    [
        ("ETRECORD_V0", None, RuntimeError, "the member ETRECORD_V0 is missing"),
        (f"{EDGE}_constants", None, ValueError, f"{EDGE}: its member {EDGE}_constants is missing"),
        (EDGE, lambda b: b[:100], ValueError, f"member {EDGE}: no serialized exported program"),
        (EDGE, lambda b: b"[]", ValueError, f"member {EDGE}: no serialized exported program"),
        (EDGE, without_node_targets, ValueError, "KeyError: 'target'"),
        (f"{EDGE}_state_dict", lambda b: b[:50], ValueError, "no tensors that can be loaded"),
        ("debug_handle_map", lambda b: b"[1]", ValueError, "expected dict, found list"),
        ("delegate_map", lambda b: b"{", ValueError, "member delegate_map: no JSON text"),
        ("delegate_map", lambda b: b"[" * 100000, ValueError, "delegate_map: no JSON text"),
        (EDGE, lambda b: b"[" * 100000, ValueError, f"member {EDGE}: no serialized exported"),
    ],
)
def test_a_damaged_file_says_where(members, tmp_path, name, damage, error, message) -> None:
    path = tmp_path / "damaged"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            if member != name:
                archive.writestr(member, data)
            elif damage is not None:
                archive.writestr(member, damage(data))
    with pytest.raises(error, match=f"{path}.*") as caught:
        parse_etrecord(path)
    assert message in str(caught.value)


def test_a_flipped_byte_in_a_member_is_found(members, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo(f"{EDGE}_state_dict").header_offset + 300
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="Bad CRC-32"):
        parse_etrecord(path)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no record")
    with pytest.raises(RuntimeError, match="invalid etrecord file"):
        parse_etrecord(path)
    with pytest.raises(TypeError, match="etrecord: expected a path or a binary file, got .*int"):
        parse_etrecord(3)


def test_paths_need_not_be_utf8(exported, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe9t\xe9"))
    folder.mkdir()
    edge = to_edge(exported)
    program = edge.to_executorch()
    program.save(folder / "model.pte")
    assert (folder / "model.pte").read_bytes() == program.buffer
    record = ETRecord()
    record.add_edge_dialect_program(edge)
    record.add_executorch_program(program)
    record.save(folder / "record.bin")
    assert list(parse_etrecord(folder / "record.bin")._debug_handle_map or {}) == ["forward"]


def test_a_failed_save_leaves_the_old_file(exported, tmp_path: Path) -> None:
    path = tmp_path / "record.bin"
    path.write_bytes(b"old")
    edge = to_edge(exported)
    record = ETRecord()
    record.add_edge_dialect_program(edge)
    record.add_executorch_program(edge.to_executorch())
    record._reference_outputs = {"forward": [lambda: None]}  # nothing that can be pickled
    with pytest.raises(Exception, match="pickle"):
        record.save(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["record.bin"]
