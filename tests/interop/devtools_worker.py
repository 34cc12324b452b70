"""One side of the exchange of traces and bundles, in a process of its own:

    python devtools_worker.py export FOLDER         model.pte, inputs.pt, SIDE.bpte, wrong.SIDE.bpte
    python devtools_worker.py record FOLDER SIDE    runs model.pte twice: SIDE.etdp, SIDE.bin
    python devtools_worker.py rows FOLDER SIDE      prints what Inspector shows of them, as JSON
    python devtools_worker.py verify FOLDER FILE    runs a bundle; prints None or the error

Runs under either package's interpreter.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch


class Model(torch.nn.Module):
    """Operators with one result, two and a list of them; numbers and tensors of several types."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 6)

    def forward(self, x: torch.Tensor):
        y = torch.relu(self.linear(x))
        largest, where = torch.topk(y, 2)
        a, b = torch.split(y, 3, dim=-1)
        return largest.softmax(-1), where, a * b


INPUT = torch.linspace(-1, 1, 8).reshape(2, 4)
DEBUG_BUFFER = 1 << 16


def export(folder: Path, side: str) -> None:
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import (
        serialize_from_bundled_program_to_flatbuffer,
    )
    from executorch.exir import to_edge

    model = Model().eval()
    program = to_edge(torch.export.export(model, (INPUT,))).to_executorch()
    (folder / f"{side}.pte").write_bytes(program.buffer)
    right = list(model(INPUT))
    for name, expected in ((side, right), (f"wrong.{side}", [right[0] + 1, *right[1:]])):
        suite = MethodTestSuite("forward", [MethodTestCase((INPUT,), expected)])
        bundle = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [suite]))
        (folder / f"{name}.bpte").write_bytes(bundle)


def record(folder: Path, side: str) -> None:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    module = _load_for_executorch(
        str(folder / "ours.pte"), enable_etdump=True, debug_buffer_size=DEBUG_BUFFER
    )
    assert module.has_etdump()
    for _ in range(2):
        module.forward((INPUT,))
    module.write_etdump_result_to_file(str(folder / f"{side}.etdp"), str(folder / f"{side}.bin"))


def rows(folder: Path, side: str) -> list:
    from executorch.devtools import Inspector

    inspector = Inspector(
        etdump_path=str(folder / f"{side}.etdp"), debug_buffer_path=str(folder / f"{side}.bin")
    )

    def values(data) -> list:
        return [
            v.tolist() if isinstance(v, torch.Tensor) else [t.tolist() for t in v] for v in data
        ]

    return [
        [
            block.name,
            [
                [e.name, list(e.perf_data.raw), bool(e.is_delegated_op), values(e.debug_data)]
                for e in block.events
            ],
            values(block.run_output or []),
        ]
        for block in inspector.event_blocks
    ]


def verify(folder: Path, file: str) -> str | None:
    from executorch.extension.pybindings.portable_lib import _load_bundled_program_from_buffer

    bundle = _load_bundled_program_from_buffer((folder / f"{file}.bpte").read_bytes())
    try:
        outputs = bundle.verify_result_with_bundled_expected_output("forward", 0, 1e-4, 1e-6)
    except RuntimeError as e:
        return str(e)
    assert len(outputs) == 3
    return None


if __name__ == "__main__":
    verbs = {"export": export, "record": record, "rows": rows, "verify": verify}
    print(json.dumps(verbs[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])))
