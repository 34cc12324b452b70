import json

import torch
from torch.export import export

from executorch.devtools.size_analysis_tool.size_analysis_tool import (
    generate_model_size_information,
    main,
)
from executorch.exir import to_edge
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult


class OfTenBytes(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"0123456789")


class Sigmoids(Partitioner):
    def partition(self, program) -> PartitionResult:
        for node in program.graph.nodes:
            if "sigmoid" in node.name:
                node.meta["delegation_tag"] = "t"
        return PartitionResult(program, {"t": DelegationSpec("OfTenBytes", [])})


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 3, 3)

    def forward(self, x):
        return self.conv(x.sigmoid())


def test_every_byte_is_accounted_for() -> None:
    edge = to_edge(export(Model(), (torch.ones(1, 2, 5),))).to_backend(Sigmoids())
    program = edge.to_executorch()
    found = generate_model_size_information(
        program.exported_program(), {"OfTenBytes": lambda blob: {"first": blob[:1]}}, program.buffer
    )
    assert [(t["name"], t["shape"], t["num_bytes"]) for t in found["tensor_data"]] == [
        ("conv.weight", [3, 2, 3], 72),
        ("conv.bias", [3], 12),
    ]
    weight = found["tensor_data"][0]
    assert (weight["dtype"], weight["element_size"], weight["numel"]) == ("float32", 4, 18)
    assert "conv" in weight["nn_module_stack"]
    (blob,) = found["delegate_blob_data"]
    assert (blob["backend_id"], blob["num_bytes"], blob["first"]) == ("OfTenBytes", 10, b"0")
    overview = found["overview"]
    assert overview["model_size"] == len(program.buffer)
    parts = ("total_tensor_data_size", "total_delegate_blob_data_size", "total_named_data_size")
    assert sum(overview[p] for p in parts) == 94
    assert overview["serialization_metadata_size"] == len(program.buffer) - 94
    plain = generate_model_size_information(program.exported_program())
    assert "model_size" not in plain["overview"]


def test_a_record_is_described(tmp_path) -> None:
    edge = to_edge(export(Model(), (torch.ones(1, 2, 5),)), generate_etrecord=True)
    edge.to_executorch().get_etrecord().save(tmp_path / "r.etrecord")
    output = tmp_path / "sizes.json"
    main(["--etrecord_path", str(tmp_path / "r.etrecord"), "--output_path", str(output)])
    sizes = json.loads(output.read_text())
    assert sizes["forward"]["overview"]["total_tensor_data_size"] == 84
