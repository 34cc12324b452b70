"""Weights are packed after some thousand rows: results stay the same, and so does memory."""

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
ROWS = [1, 2, 7, 8, 9, 40, 128, 300]
PACKING_ROWS = 1024  # kPayingRows in packed_weights.cpp


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
    path = tmp_path_factory.mktemp("packed") / "mlp.pte"
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


def inputs() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(rows, WIDTH, generator=generator) for rows in ROWS]


def test_results_stay_the_same_to_the_bit(mlp: Mlp, program_file: Path) -> None:
    from_bytes = Runtime.get().load_program(program_file.read_bytes()).load_method("forward")
    program = Runtime.get().load_program(program_file)
    method = program.load_method("forward")
    cases = inputs()
    with torch.no_grad():
        eager = [mlp(x) for x in cases]
    assert sum(ROWS) < PACKING_ROWS, "nothing is packed before"
    first = [method.execute([x])[0].clone() for x in cases]
    for _ in range(PACKING_ROWS // ROWS[-1]):
        method.execute([cases[-1]])
    packed = [method.execute([x])[0].clone() for x in cases]
    other = program.load_method("forward")
    for x, y, a, b in zip(cases, eager, first, packed, strict=True):
        torch.testing.assert_close(a, y, rtol=1e-4, atol=1e-5)
        assert torch.equal(a, b), f"{len(x)} rows"
        assert torch.equal(a, other.execute([x])[0]), f"{len(x)} rows, another method"
        assert torch.equal(a, from_bytes.execute([x])[0]), f"{len(x)} rows, never packed"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident memory")
@pytest.mark.parametrize("rows", [16, 128])
def test_weights_are_in_memory_once(rows: int, program_file: Path) -> None:
    program = Runtime.get().load_program(program_file)
    method = program.load_method("forward")
    x = torch.randn(rows, WIDTH)
    method.execute([x])
    file_before, rest_before = resident_kb(program_file)
    assert file_before >= WEIGHT_KB, "the first call reads the file"
    for _ in range(PACKING_ROWS // rows):
        method.execute([x])
    file_after, rest_after = resident_kb(program_file)
    assert file_after < WEIGHT_KB // 10, "packed weights' pages are given back"
    assert rest_after - rest_before < WEIGHT_KB * 1.1, "they are packed once"
    # A second method of the program shares them.
    other = program.load_method("forward")
    for _ in range(3):
        other.execute([x])
    file_shared, rest_shared = resident_kb(program_file)
    assert file_shared < WEIGHT_KB // 10
    assert rest_shared - rest_after < WEIGHT_KB // 2


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident memory")
def test_products_of_few_rows_do_not_pack(program_file: Path) -> None:
    method = Runtime.get().load_program(program_file).load_method("forward")
    x = torch.randn(8, WIDTH)
    method.execute([x])
    _, before = resident_kb(program_file)
    for _ in range(PACKING_ROWS // 8 + 1):
        method.execute([x])
    in_file, after = resident_kb(program_file)
    assert in_file >= WEIGHT_KB
    assert after - before < WEIGHT_KB // 2


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident memory")
def test_memory_is_freed_with_the_program(program_file: Path) -> None:
    x = torch.randn(300, WIDTH)
    _, before = resident_kb(program_file)
    for _ in range(5):
        method = Runtime.get().load_program(program_file).load_method("forward")
        for _ in range(PACKING_ROWS // 300 + 1):
            method.execute([x])
        del method
    _, after = resident_kb(program_file)
    assert after - before < 2 * WEIGHT_KB


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
    for _ in range(PACKING_ROWS // 300 + 2):
        torch.testing.assert_close(method.execute([x])[0], expected, rtol=1e-4, atol=1e-5)
