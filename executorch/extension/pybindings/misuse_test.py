"""No misuse from Python ends the process: each raises an exception that says what is wrong."""

from __future__ import annotations

import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import ExecutorchBackendConfig, schema, to_edge
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir.passes import MemoryPlanningPass
from executorch.runtime import Runtime

CASES = Path(__file__).with_name("misuse_cases.py")
# Of these every one is said to whoever asked; others would be mistakes of the bindings.
EXPECTED = (
    "AttributeError",
    "BufferError",
    "FileNotFoundError",
    "IndexError",
    "IsADirectoryError",
    "KeyboardInterrupt",
    "MemoryError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "RecursionError",
    "RuntimeError",
    "SystemExit",
    "TypeError",
    "UnicodeEncodeError",
    "ValueError",
)
SECONDS = 120


class Affine(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2 + y, x - y


class Logical(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.logical_or(x, x), torch.logical_not(x)


class HandedOn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Both(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x, y, x.view(-1)


class Constant(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("c", torch.arange(3.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + self.c, self.c


def lower(module: nn.Module, args: tuple, shapes=None, plans_interface: bool = True):
    planning = MemoryPlanningPass(
        alloc_graph_input=plans_interface, alloc_graph_output=plans_interface
    )
    exported = torch.export.export(module, args, dynamic_shapes=shapes)
    return to_edge(exported).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))


def viewed(program: schema.Program) -> bytes:
    """That of Both, whose copy is a view with a name: no exporter gives one of an input out."""
    plan = program.execution_plan[0]
    (call,) = (instruction.instr_args for instruction in plan.chains[0].instructions)
    assert isinstance(call, schema.KernelCall)
    plan.operators = [schema.Operator("executorch_prim::et_view", "default")]
    call.args.pop()
    view = plan.values[call.args[-1]].val
    assert isinstance(view, schema.Tensor)
    view.extra_tensor_info = schema.ExtraTensorInfo(fully_qualified_name="seen")
    return bytes(serialize_pte_binary(PTEFile(program)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("misuse")
    rows = torch.export.Dim("rows", max=6)
    example = (torch.zeros(4, 3), torch.zeros(4, 3))
    affine = lower(Affine(), example, ({0: rows}, {0: rows}))
    suite = MethodTestSuite("forward", [MethodTestCase(example, list(Affine()(*example)))])
    bundle = serialize_from_bundled_program_to_flatbuffer(BundledProgram(affine, [suite]))
    (folder / "bundle.bpte").write_bytes(bundle)
    (folder / "text").write_text("text")
    programs = {
        "affine": affine,
        "logical": lower(Logical(), (torch.ones(4, dtype=torch.bool),), plans_interface=False),
        "handed_on": lower(HandedOn(), (torch.zeros(256, 256),), plans_interface=False),
        "both": lower(Both(), (torch.zeros(256, 256), torch.ones(256, 256)), plans_interface=False),
        "constant": lower(Constant(), (torch.zeros(3),)),
    }
    for name, program in programs.items():
        (folder / f"{name}.pte").write_bytes(program.buffer)
    (folder / "viewed.pte").write_bytes(viewed(programs["both"].executorch_program))
    return folder


def run_cases(folder: Path, module: str = "") -> dict[str, str]:
    """What each case raised, in processes that go on where one ended."""
    code = (
        f"import runpy, sys; {f'import {module}; ' if module else ''}"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    answers: dict[str, str] = {}
    while True:
        command = [sys.executable, "-c", code, str(CASES), str(folder), str(len(answers))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        lines = done.stdout.splitlines()
        for line in lines:
            name, _, answer = line.partition(" -> ")
            answers[name] = answer
        if done.returncode == 0:
            return answers
        assert lines, done.stderr
        ended = lines[-1].partition(" -> ")[0]
        answers[ended] = f"ended by {done.returncode}: {done.stderr[-500:]}"


@pytest.mark.parametrize("module", ["", "torch"], ids=["numpy", "torch"])
def test_misuse_raises(folder: Path, module: str) -> None:
    answers = run_cases(folder, module)
    assert len(answers) > 100
    wrong = {
        name: answer
        for name, answer in answers.items()
        if answer.partition(":")[0] not in (("Fine",) if name.startswith("fine: ") else EXPECTED)
    }
    assert not wrong
    assert answers["huge stride"].startswith("ValueError: forward: input 0 (x) has a stride")
    assert answers["huge number"].startswith("OverflowError: forward: input 0")
    assert answers["surrogate"].startswith("UnicodeEncodeError")
    assert answers["method"].startswith(r"RuntimeError: loading method '\0': InvalidArgument")


def test_calls_that_fail_keep_no_inputs(folder: Path) -> None:
    method = Runtime.get().load_program(folder / "both.pte").load_method("forward")
    kept = []
    for _ in range(5):
        x = np.ones((256, 256), np.float32)
        kept.append(weakref.ref(x))
        with pytest.raises(RuntimeError, match="input 1"):
            method.execute([x, np.ones((9, 9), np.float32)])
    del x
    assert sum(each() is not None for each in kept) <= 1  # what the method reads now
    other = np.ones((256, 256), np.float32)
    method.execute([other, other])
    assert all(each() is None for each in kept)


def test_an_attribute_keeps_the_input_that_it_is_a_view_of(folder: Path) -> None:
    method = Runtime.get().load_program(folder / "viewed.pte").load_method("forward")
    x, other = (np.full((256, 256), value, np.float32) for value in (3, 4))
    kept = weakref.ref(x)
    method.execute([x, other])
    seen = method._method.get_attribute("seen")
    del x
    method.execute([other, other])
    assert kept() is not None and bool((seen == 3).all())
    del seen
    assert kept() is None


def test_an_input_of_open_bound_is_kept_as_long_as_it_is_read(tmp_path: Path) -> None:
    program = lower(HandedOn(), (torch.zeros(2, 1, 1, 1),), plans_interface=False)
    opened = program.executorch_program
    for value in opened.execution_plan[0].values:
        if isinstance(value.val, schema.Tensor):
            value.val.sizes = [2**31 - 1] * 4
            value.val.shape_dynamism = schema.TensorShapeDynamism.DYNAMIC_BOUND
    path = tmp_path / "open.pte"
    path.write_bytes(bytes(serialize_pte_binary(PTEFile(opened))))
    code = (
        "import sys, numpy as np\n"
        "from executorch.runtime import Runtime\n"
        "method = Runtime.get().load_program(sys.argv[1]).load_method('forward')\n"
        "(y,) = method.execute([np.full((2, 3, 1, 1), 7, np.float32)])\n"
        "print(np.asarray(y).sum())\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout == "42.0\n", done.stderr
