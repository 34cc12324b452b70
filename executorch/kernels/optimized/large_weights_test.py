"""Large weights are read where the program's file is mapped, whatever the number of rows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import to_edge
from executorch.runtime import Runtime

# Weights are much larger than what else is counted with them: reading a bias maps a huge page of
# the file where the system has some, and Python's own memory grows by up to 4 MB meanwhile.
WIDTH, LAYERS = 1536, 8
WEIGHT_KB = LAYERS * WIDTH * WIDTH * 4 // 1024
ROWS = [1, 2, 7, 8, 9, 24, 25, 40, 49, 128, 300]


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(LAYERS):
            layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])  # the last one has nothing to fuse

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@pytest.fixture(scope="module")
def mlp() -> Mlp:
    torch.manual_seed(0)
    return Mlp().eval()


@pytest.fixture(scope="module")
def program_file(mlp: Mlp, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = {"x": {0: Dim("rows", max=512)}}
    program = to_edge(export(mlp, (torch.randn(16, WIDTH),), dynamic_shapes=rows))
    path = tmp_path_factory.mktemp("weights") / "mlp.pte"
    path.write_bytes(program.to_executorch().buffer)
    return path


def resident_kb(path: Path) -> tuple[int, int]:
    """Of the mapped file, and of memory that belongs to no file."""
    of_file = of_none = 0
    current = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            current = line
        elif line.startswith("Rss:") and current.endswith(str(path)):
            of_file += int(line.split()[1])
        elif line.startswith("Anonymous:"):
            of_none += int(line.split()[1])
    return of_file, of_none


def test_any_number_of_rows_equals_eager(mlp: Mlp, program_file: Path) -> None:
    from_bytes = Runtime.get().load_program(program_file.read_bytes()).load_method("forward")
    method = Runtime.get().load_program(program_file).load_method("forward")
    generator = torch.Generator().manual_seed(1)
    for rows in ROWS:
        x = torch.randn(rows, WIDTH, generator=generator)
        with torch.no_grad():
            expected = mlp(x)
        found = method.execute([x])[0]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        assert torch.equal(found, from_bytes.execute([x])[0]), f"{rows} rows"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident memory")
@pytest.mark.parametrize("rows", [1, 16, 40, 300])
def test_weights_are_in_memory_once(rows: int, program_file: Path) -> None:
    method = Runtime.get().load_program(program_file).load_method("forward")
    x = torch.randn(rows, WIDTH)
    _, before = resident_kb(program_file)
    for _ in range(3):
        method.execute([x])
    in_file, after = resident_kb(program_file)
    assert in_file >= WEIGHT_KB, "weights are read from the file"
    assert after - before < WEIGHT_KB // 2, "they are not copied"


class Batch(nn.Module):
    """A product whose batch goes through two constant matrices, each for two entries."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2 * 256, 256) / 16)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.weight.view(2, 1, 256, 256).expand(2, 2, 256, 256)
        return torch.relu(torch.bmm(x, weights.reshape(4, 256, 256)))


def test_matrices_of_a_batch_stay_apart(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = Batch().eval(), torch.randn(4, 300, 256)
    path = tmp_path / "batch.pte"
    path.write_bytes(to_edge(export(module, (x,))).to_executorch().buffer)
    method = Runtime.get().load_program(path).load_method("forward")
    with torch.no_grad():
        expected = module(x)
    torch.testing.assert_close(method.execute([x])[0], expected, rtol=1e-4, atol=1e-5)
