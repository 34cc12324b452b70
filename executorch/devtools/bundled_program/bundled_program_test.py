from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest
import torch

from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program import schema
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    deserialize_from_flatbuffer_to_bundled_program,
    deserialize_from_json_to_bundled_program,
    serialize_from_bundled_program_to_flatbuffer,
    serialize_from_bundled_program_to_json,
    write_schema,
)
from executorch.exir import to_edge


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: int):
        return torch.relu(x) * k, x + 1


@pytest.fixture(scope="module")
def program():
    exported = torch.export.export(Scaled(), (torch.ones(2, 4), 3))
    return to_edge(exported).to_executorch()


def cases() -> list[MethodTestCase]:
    tensors = (torch.arange(8.0).reshape(2, 4) - 4, torch.ones(4, 2).t())
    return [MethodTestCase((x, 3), Scaled()(x, 3)) for x in tensors]


def suites(*test_cases) -> list[MethodTestSuite]:
    return [MethodTestSuite("forward", test_cases)]


def test_a_bundle_survives_being_written_and_read(program):
    bundled = BundledProgram(program, suites(*cases()))
    file = serialize_from_bundled_program_to_flatbuffer(bundled)
    assert deserialize_from_flatbuffer_to_bundled_program(file) == bundled.serialize_to_schema()


def test_the_file_holds_the_program_aligned_behind_its_identifier(program):
    file = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, suites(*cases())))
    assert file[4:8] == b"BP08"
    assert file.index(program.buffer) % 32 == 0


def test_tensors_are_stored_in_their_dim_order(program):
    second = BundledProgram(program, suites(*cases())).serialize_to_schema()
    tensor = second.method_test_suites[0].test_cases[1].inputs[0].val
    assert (tensor.sizes, tensor.dim_order, len(tensor.data)) == ([2, 4], [1, 0], 32)


def test_json_says_the_same(program):
    bundled = BundledProgram(program, suites(*cases())).serialize_to_schema()
    text = serialize_from_bundled_program_to_json(bundled)
    assert deserialize_from_json_to_bundled_program(text) == bundled


def test_a_program_file_is_bundled_without_its_model(program, tmp_path):
    path = tmp_path / "model.pte"
    path.write_bytes(program.buffer)
    bundled = BundledProgram(None, suites(*cases()), pte_file_path=str(path))
    assert bundled.serialize_to_schema().program == program.buffer
    with pytest.raises(RuntimeError, match="either"):
        BundledProgram(None, suites(*cases()))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (lambda: MethodTestCase((torch.ones(2, 4),)), "test case 0: 1 inputs, the method takes 2"),
        (lambda: MethodTestCase((torch.ones(2, 4).long(), 3)), "input 0 is of torch.int64"),
        (lambda: MethodTestCase((5, 3)), "input 0 is a int, the method's is a tensor"),
        (lambda: MethodTestCase((torch.ones(2, 4), 4)), "input 1 is 4; it was exported as 3"),
        (lambda: MethodTestCase((torch.ones(2, 4), True)), "input 1 is True"),
        (
            lambda: MethodTestCase((torch.ones(2, 4), 3), [torch.ones(1)]),
            "1 expected outputs, the method has 2",
        ),
        (
            lambda: MethodTestCase((torch.ones(2, 4), 3), [torch.ones(2, 4), torch.ones(1).int()]),
            "expected output 1 is of torch.int32",
        ),
        (
            lambda: MethodTestCase((torch.ones(4), 3)),
            r"test case 0: input 0 has shape \[4\]; the method's has \[2, 4\]",
        ),
        (lambda: MethodTestCase((torch.ones(1, 4), 3)), r"input 0 has shape \[1, 4\]"),
        (
            lambda: MethodTestCase((torch.ones(2, 4), 3), [torch.ones(2, 4), torch.ones(2)]),
            r"expected output 1 has shape \[2\]",
        ),
    ],
)
def test_a_case_that_does_not_fit_is_refused_with_its_place(program, case, message):
    with pytest.raises(ValueError, match=message):
        BundledProgram(program, suites(case()))


def test_inputs_of_dynamic_shape_lie_within_their_bounds():
    rows = torch.export.Dim("rows", max=8)
    inputs = (torch.ones(2, 4), 3)
    exported = torch.export.export(Scaled(), inputs, dynamic_shapes={"x": {0: rows}, "k": None})
    program = to_edge(exported).to_executorch()
    BundledProgram(program, suites(*(MethodTestCase((torch.ones(n, 4), 3)) for n in (2, 5, 8))))
    for x in (torch.ones(9, 4), torch.ones(2, 5), torch.ones(4)):
        with pytest.raises(ValueError, match=r"input 0 has shape .* has \[8, 4\] at most"):
            BundledProgram(program, suites(MethodTestCase((x, 3))))


def test_unknown_and_repeated_methods_are_refused(program):
    with pytest.raises(ValueError, match="no method 'backward'"):
        BundledProgram(program, [MethodTestSuite("backward", [])])
    with pytest.raises(ValueError, match="more than one test suite"):
        BundledProgram(program, suites() + suites())
    with pytest.raises(TypeError, match="input 0 is a str"):
        MethodTestCase(("text",))
    for tensor, kind in (
        (torch.ones(2, device="meta"), "meta"),
        (torch.eye(2).to_sparse(), "sparse"),
    ):
        with pytest.raises(
            TypeError, match=f"input 0 is a .*{kind}.* tensor; expected one with str"
        ):
            MethodTestCase((tensor,))
    for cases_given in (None, [3]):
        with pytest.raises(TypeError, match="'forward': test_cases: expected a list of MethodTest"):
            BundledProgram(program, [MethodTestSuite("forward", cases_given)])
    with pytest.raises(TypeError, match="executorch_program: expected what to_executorch gave, fo"):
        BundledProgram(3, [])
    with pytest.raises(TypeError, match="expected a list of MethodTestSuites, found 3"):
        BundledProgram(program, 3)
    with pytest.raises(TypeError, match="expected a MethodTestSuite, found 3"):
        BundledProgram(program, [3])
    with pytest.raises(TypeError, match="expected a BundledProgram, found 3"):
        serialize_from_bundled_program_to_flatbuffer(3)


def test_damaged_files_are_refused(program):
    file = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, suites(*cases())))
    with pytest.raises(ValueError, match="not a bundled program"):
        deserialize_from_flatbuffer_to_bundled_program(program.buffer)
    with pytest.raises(ValueError, match="damaged"):
        deserialize_from_flatbuffer_to_bundled_program(file[:60])
    random.seed(0)
    refused = 0
    start = file.index(program.buffer)
    positions = [i for i in range(8, len(file)) if not start <= i < start + len(program.buffer)]
    for position in positions:
        flipped = bytearray(file)
        flipped[position] ^= 1 << random.randrange(8)
        try:
            deserialize_from_flatbuffer_to_bundled_program(flipped)
        except ValueError:
            refused += 1
    assert 0 < refused < len(positions)


def test_kinds_of_values_that_no_file_can_hold_are_refused():
    case = schema.BundledMethodTestCase([schema.Value("text")], [])
    bundle = schema.BundledProgram(2, [schema.BundledMethodTestSuite("forward", [case])], b"")
    with pytest.raises(ValueError, match="cannot hold a str"):
        serialize_from_bundled_program_to_flatbuffer(bundle)


@pytest.mark.skipif(shutil.which("flatc") is None, reason="needs flatc")
def test_written_schemas_read_bundles(program, tmp_path):
    for name in ("bundled_program_schema", "scalar_type"):
        write_schema(str(tmp_path), name)
    with pytest.raises(ValueError, match="expected one of"):
        write_schema(str(tmp_path), "program")
    bundle = BundledProgram(program, suites(*cases()))
    (tmp_path / "a.bpte").write_bytes(serialize_from_bundled_program_to_flatbuffer(bundle))
    flatc = ["flatc", "--json", "--strict-json", "bundled_program_schema.fbs", "--", "a.bpte"]
    subprocess.run(flatc, cwd=tmp_path, check=True)
    read = json.loads((tmp_path / "a.json").read_text())
    assert [suite["method_name"] for suite in read["method_test_suites"]] == ["forward"]
    assert bytes(read["program"]) == program.buffer
