"""One side of exchanging ETDumps and ETRecords; runs under either package's interpreter.

python inspector_cases.py export SIDE FOLDER   write NAME.SIDE.{pte,etrecord,inputs}
python inspector_cases.py run SIDE FOLDER      run every program: NAME.EXPORTER.SIDE.{etdp,values}
python inspector_cases.py show SIDE FOLDER     every dump with its record: NAME....SIDE.rows
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU())
        self.head = nn.Linear(16, 4)
        self.register_buffer("offset", torch.linspace(0, 1, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.head(self.block(x)) + self.offset
        return torch.softmax(y, -1), torch.topk(y, 2).values, y.transpose(0, 1).sum(0)


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.norm(self.conv(x)))
        return y.mean((2, 3)), torch.cat(torch.split(y, 2, 1)[::-1], 1)


MODELS = {
    "net": (Net, lambda: torch.randn(3, 8)),
    "pictures": (Pictures, lambda: torch.randn(2, 3, 8, 8)),
}
CASES = [f"{name}_{backend}" for name in MODELS for backend in ("portable", "xnnpack")]
BUFFER_BYTES = 1 << 20


def export(side: str, folder: Path) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    for case in CASES:
        name, backend = case.split("_")
        model, example = MODELS[name]
        torch.manual_seed(0)
        inputs = (example(),)
        exported = torch.export.export(model().eval(), inputs)
        manager = to_edge_transform_and_lower(
            exported,
            partitioner=[XnnpackPartitioner()] if backend == "xnnpack" else [],
            generate_etrecord=True,
        )
        program = manager.to_executorch()
        record = program.get_etrecord()
        record.update_representative_inputs(list(inputs))
        record.save(str(folder / f"{case}.{side}.etrecord"))
        (folder / f"{case}.{side}.pte").write_bytes(program.buffer)
        torch.save(inputs, folder / f"{case}.{side}.inputs")


def run(side: str, folder: Path) -> None:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    for program in sorted(folder.glob("*.pte")):
        module = _load_for_executorch(
            str(program), enable_etdump=True, debug_buffer_size=BUFFER_BYTES
        )
        inputs = torch.load(program.with_suffix(".inputs"), weights_only=True)
        for _ in range(2):
            module.forward(inputs)
        stem = f"{program.name.removesuffix('.pte')}.{side}"
        module.write_etdump_result_to_file(
            str(folder / f"{stem}.etdp"), str(folder / f"{stem}.values")
        )


def show(side: str, folder: Path) -> None:
    from executorch.devtools import Inspector

    for dump in sorted(folder.glob("*.etdp")):
        case, exporter, _ = dump.name.split(".", 2)
        values = dump.with_suffix(".values")
        inspector = Inspector(
            etdump_path=str(dump),
            etrecord=str(folder / f"{case}.{exporter}.etrecord"),
            debug_buffer_path=str(values) if values.exists() else None,
        )
        with open(dump.with_suffix(f".{side}.txt"), "w") as file:
            inspector.print_data_tabular(file)
        found = {
            "table": [_plain(row) for row in inspector.to_dataframe().to_dict("records")],
            "outputs": [_plain(block.run_output) for block in inspector.event_blocks],
            "modules": [
                float(inspector.find_total_for_module(m)) for m in ("L__self__", "head", "norm")
            ],
        }
        if values.exists():
            for distance in ("MSE", "L1", "SNR"):
                gaps = inspector.calculate_numeric_gap(distance)
                found[distance] = [_plain(row) for row in gaps.to_dict("records")]
        dump.with_suffix(f".{side}.rows").write_text(json.dumps(found))


def _plain(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), list(value.shape), value.flatten().tolist()]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and value != value else value


if __name__ == "__main__":
    {"export": export, "run": run, "show": show}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
