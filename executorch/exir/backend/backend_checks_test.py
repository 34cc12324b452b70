"""What backends and partitioners give of the wrong kind is refused with their name."""

import re
from typing import Any

import pytest
import torch

from executorch.exir import to_edge
from executorch.exir.backend.backend_api import to_backend
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.all_node_partitioner import AllNodePartitioner
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG

PROGRAM = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))


class GivesOne(BackendDetails):
    """Gives what the test says for each program."""

    given: Any = PreprocessResult(b"")

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> Any:
        return GivesOne.given


class GivesAll(GivesOne):
    """Gives what the test says for all programs."""

    @classmethod
    def preprocess_multimethod(cls, edge_programs: Any, compile_specs: Any) -> Any:
        return cls.given


class TagsAll(Partitioner):
    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.delegation = spec

    def partition(self, exported_program: Any) -> PartitionResult:
        return PartitionResult(exported_program, {"all": self.delegation})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"x", "expected a PreprocessResult, got <class 'bytes'>"),
        (PreprocessResult("x"), "processed_bytes: expected bytes, found 'x'"),  # type: ignore[arg-type]
        (PreprocessResult(b"", 3), "debug_handle_map: expected a dict or None, found 3"),  # type: ignore[arg-type]
        (PreprocessResult(b"", None, 3), "data_store_output: expected a Named.* found 3"),  # type: ignore[arg-type]
    ],
)
def test_results_have_types(monkeypatch: pytest.MonkeyPatch, given: Any, message: str) -> None:
    monkeypatch.setattr(GivesOne, "given", given)
    with pytest.raises(TypeError, match=f"GivesOne.preprocess: {message}"):
        to_edge(PROGRAM).to_backend(AllNodePartitioner("GivesOne", []))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (None, TypeError, "expected a dict of lists by method, found None"),
        ({}, ValueError, "method 'forward': expected a list of 1 results, .* found None"),
        ({"forward": []}, ValueError, "method 'forward': expected a list of 1 results, .* found 0"),
        ({"forward": PreprocessResult(b"")}, ValueError, "method 'forward': .* found Preprocess"),
    ],
)
def test_every_program_has_a_result(
    monkeypatch: pytest.MonkeyPatch, given: Any, error: type[Exception], message: str
) -> None:
    monkeypatch.setattr(GivesAll, "given", given)
    with pytest.raises(error, match=f"GivesAll.preprocess_multimethod: {message}"):
        to_edge(PROGRAM).to_backend(AllNodePartitioner("GivesAll", []))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (3, "expected a DelegationSpec, found 3"),
        (DelegationSpec("GivesOne", 3), "expected a list of CompileSpecs, found 3"),  # type: ignore[arg-type]
        (DelegationSpec("GivesOne", [CompileSpec(3, b"")]), "expected a CompileSpec with a str"),  # type: ignore[arg-type]
        (DelegationSpec("GivesOne", [CompileSpec("k", "v")]), "'k': expected bytes as value"),  # type: ignore[arg-type]
    ],
)
def test_tags_have_delegation_specs(spec: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"partition: partition_tags\['all'\]: {message}"):
        to_edge(PROGRAM).to_backend(TagsAll(spec))


@pytest.mark.parametrize("declared", [[], ["other"]])
def test_tags_of_nodes_are_among_those_given(declared: list[str]) -> None:
    class Forgets(Partitioner):
        def partition(self, program: Any) -> PartitionResult:
            (relu,) = [n for n in program.graph.nodes if n.op == "call_function"]
            relu.meta[TAG] = "t"
            tags = dict.fromkeys(declared, DelegationSpec("GivesOne", []))
            return PartitionResult(program, tags)

    message = "node aten_relu_default has the tag 't', which partition_tags does not have; it has "
    with pytest.raises(ValueError, match=re.escape(message + str(declared))):
        to_edge(PROGRAM).to_backend(Forgets())


def test_whole_programs_are_checked_as_well() -> None:
    with pytest.raises(TypeError, match=r"to_backend\('GivesOne'\): expected a list of Comp"):
        to_backend("GivesOne", to_edge(PROGRAM).exported_program(), 3)
    with pytest.raises(TypeError, match="to_backend: expected an ExportedProgram, got"):
        to_backend("GivesOne", None, [])
