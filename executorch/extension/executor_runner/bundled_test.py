"""`executor_runner --bundled` on bundles of Python."""

import json
import subprocess
from pathlib import Path

import pytest
import torch

from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.schema import bundled_program_schema
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import ExecutorchBackendConfig, schema, to_edge
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from tests.built import BUILD, needs

RUNNER = BUILD / "executorch" / "extension" / "executor_runner" / "executor_runner"
pytestmark = needs(RUNNER)


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 3


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second test case expects what the program does not compute."""
    x = torch.arange(8.0).reshape(2, 4) - 4
    program = to_edge(torch.export.export(Scaled(), (x,))).to_executorch()
    cases = [MethodTestCase((x,), Scaled()(x)), MethodTestCase((x,), Scaled()(x) + 1)]
    bundled = BundledProgram(program, [MethodTestSuite("forward", cases)])
    path = tmp_path_factory.mktemp("bundle") / "scaled.bpte"
    path.write_bytes(serialize_from_bundled_program_to_flatbuffer(bundled))
    return path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(RUNNER), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("option", ["--bundled_program", "--bundled --model_path"])
def test_a_case_that_holds(bundle: Path, option: str) -> None:
    done = run(*option.split(), bundle, "--print_output=all")
    assert done.returncode == 0, done.stderr
    assert "12" not in done.stdout and "9" in done.stdout  # 3 * relu(-4 ... 3)


def test_a_case_is_run_as_often_as_asked_for_and_told_as_json(bundle: Path) -> None:
    done = run("--bundled_program", bundle, "--num_executions=3", "--json", "--print_output=all")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["model_path"] == str(bundle)
    assert len(report["milliseconds"]) == 3
    assert report["outputs"][0]["data"] == [0, 0, 0, 0, 0, 3, 6, 9]


def test_what_was_fused_is_printed_as_for_other_programs(tmp_path: Path) -> None:
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU()), torch.ones(1, 4)
    program = to_edge(torch.export.export(net, (x,))).to_executorch()
    bundled = BundledProgram(program, [MethodTestSuite("forward", [MethodTestCase((x,), net(x))])])
    plain, path = tmp_path / "linear.pte", tmp_path / "linear.bpte"
    program.save(str(plain))
    path.write_bytes(serialize_from_bundled_program_to_flatbuffer(bundled))
    found, expected = (  # logs begin with their level
        [line for line in run("--print_fusion", *words).stderr.splitlines() if line[1:2] != " "]
        for words in (("--bundled_program", path), ("--model_path", plain))
    )
    assert found == expected != []


def test_weights_in_a_file_beside_the_bundle(tmp_path: Path) -> None:
    net, x = torch.nn.Linear(4, 2), torch.ones(1, 4)
    config = ExecutorchBackendConfig(external_constants=True)
    program = to_edge(torch.export.export(net, (x,))).to_executorch(config)
    program.write_tensor_data_to_file(str(tmp_path))
    (weights,) = tmp_path.glob("*.ptd")
    bundled = BundledProgram(program, [MethodTestSuite("forward", [MethodTestCase((x,), net(x))])])
    path = tmp_path / "linear.bpte"
    path.write_bytes(serialize_from_bundled_program_to_flatbuffer(bundled))
    done = run("--bundled_program", path, "--data_path", weights)
    assert done.returncode == 0, done.stderr
    done = run("--bundled_program", path, "--data_path", tmp_path / "nix.ptd")
    assert done.returncode == 1 and "nix.ptd" in done.stderr


def test_a_case_that_does_not_hold_is_named(bundle: Path) -> None:
    done = run("--bundled_program", bundle, "--testset_idx=1")
    assert done.returncode == 1
    assert "test case 1" in done.stderr


def test_a_case_there_is_not(bundle: Path) -> None:
    done = run("--bundled_program", bundle, "--testset_idx=2")
    assert done.returncode == 1 and "2" in done.stderr


def test_a_program_that_is_no_bundle(bundle: Path) -> None:
    plain = bundle.with_name("plain.pte")
    x = torch.ones(2, 4)
    to_edge(torch.export.export(Scaled(), (x,))).to_executorch().save(str(plain))
    done = run("--bundled_program", plain)
    assert done.returncode == 1
    assert "not a bundled program" in done.stderr


def test_a_damaged_bundle(bundle: Path) -> None:
    damaged = bundle.with_name("damaged.bpte")
    damaged.write_bytes(bundle.read_bytes()[:200])
    done = run("--bundled_program", damaged)
    assert done.returncode == 1 and "damaged" in done.stderr


def test_a_bundle_of_a_program_without_methods(tmp_path: Path) -> None:
    empty = schema.Program(0, [], [], [], [], schema.SubsegmentOffsets(0, []))
    bundled = bundled_program_schema.BundledProgram(
        0, [], bytes(serialize_pte_binary(PTEFile(empty)))
    )
    path = tmp_path / "empty.bpte"
    path.write_bytes(serialize_from_bundled_program_to_flatbuffer(bundled))
    done = run("--bundled_program", path)
    assert done.returncode == 1 and "find a method" in done.stderr
