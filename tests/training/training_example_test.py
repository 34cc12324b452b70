"""examples/training as its README says: in C++ and Python each step is that of eager PyTorch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._flat_tensor import FlatTensorSerializer
from tests.built import BUILD, ROOT, needs
from tests.modules import load

EXAMPLE = ROOT / "examples" / "training"
TRAIN = BUILD / "examples" / "training" / "train"
N_STEPS = 60


def run(*command: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(EXAMPLE)])}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are."""
    folder = tmp_path_factory.mktemp("training")
    run(sys.executable, str(EXAMPLE / "export_training.py"), cwd=folder)
    return folder


def eager(task: str) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The losses of the steps, and the weights behind them."""
    model, x, y = load(EXAMPLE / "tasks.py").TASKS[task]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        loss = model(x, y)[0]
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: weight.detach() for name, weight in model.named_parameters()}


def saved(path: Path) -> dict[str, torch.Tensor]:
    data = FlatTensorSerializer().deserialize(Cord(path.read_bytes()))
    found = {}
    for name, entry in data.named_data.items():
        assert entry.tensor_layout is not None
        content = bytearray(data.buffers[entry.buffer_index])
        values = torch.frombuffer(content, dtype=torch.float32)
        found[name] = values.reshape(entry.tensor_layout.sizes)
    return found


@pytest.mark.parametrize("language", [pytest.param("C++", marks=needs(TRAIN)), "Python"])
@pytest.mark.parametrize("task", ["xor", "bars"])
def test_it_learns_as_eager_does(task: str, language: str, folder: Path) -> None:
    script = [sys.executable, str(EXAMPLE / "train.py")]
    command = [str(TRAIN)] if language == "C++" else script
    printed = run(*command, task, str(N_STEPS), cwd=folder)
    lines = re.findall(r"^(\d+) loss (\S+) right (\d+) of (\d+)$", printed, re.M)
    assert [int(step) for step, *_ in lines] == list(range(N_STEPS))
    losses, weights = eager(task)
    found = [float(loss) for _, loss, *_ in lines]
    # Float rounding, which grows from step to step.
    torch.testing.assert_close(found, losses, atol=1e-5, rtol=1e-3)
    assert found[-1] < 0.3 * found[0]
    assert lines[-1][2] == lines[-1][3]
    trained = saved(folder / f"{task}-trained.ptd")
    assert trained.keys() == weights.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(trained[name], weight, atol=1e-4, rtol=1e-3)


def test_training_goes_on_from_saved_weights(folder: Path) -> None:
    script = str(EXAMPLE / "train.py")
    first = run(sys.executable, script, "xor", "20", cwd=folder).splitlines()
    original = (folder / "xor.ptd").read_bytes()
    (folder / "xor.ptd").write_bytes((folder / "xor-trained.ptd").read_bytes())
    try:
        second = run(sys.executable, script, "xor", "1", cwd=folder)
    finally:
        (folder / "xor.ptd").write_bytes(original)
    loss = [float(line.split()[2]) for line in (first[0], first[-1], second)]
    assert loss[2] < loss[1] < loss[0]


@needs(TRAIN)
def test_what_is_missing_ends_it(tmp_path: Path) -> None:
    assert subprocess.run([TRAIN], cwd=tmp_path, capture_output=True).returncode == 2
    done = subprocess.run([TRAIN, "xor"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "xor.pte" in done.stderr
