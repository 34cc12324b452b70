"""Exports of equal models in different processes give equal bytes: neither hash seeds nor addresses
decide anything."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[2]


def digests() -> list[str]:
    """One line for each program: portable, delegated as a whole, in parts, and quantized."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.exir import to_edge_transform_and_lower
    from tests.models import zoo

    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    image, tokens = torch.randn(1, 3, 8, 8), torch.randn(2, 4, 16)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).eval()
    with torch.no_grad():
        prepared = prepare_pt2e(
            torch.export.export(net, (image,)).module(),
            XNNPACKQuantizer().set_global(get_symmetric_quantization_config()),
        )
        prepared(image)
        methods = {n: m.export() for n, m in zoo.build("two_methods").items()}
        programs = {
            "gpt": {n: m.export() for n, m in zoo.build("gpt").items()},
            "block": {"forward": torch.export.export(block, (tokens,))},
            "methods": methods,
            "quantized": {"forward": torch.export.export(convert_pt2e(prepared), (image,))},
        }
        lines = []
        for name, given in programs.items():
            for partitioners in ([], [XnnpackPartitioner()]):
                edge = to_edge_transform_and_lower(given, partitioner=partitioners)
                digest = hashlib.sha256(edge.to_executorch().buffer).hexdigest()
                lines.append(f"{name} {len(partitioners)} {digest}")
    return lines


def test_processes_agree_on_every_byte() -> None:
    code = "from tests.models.determinism_test import digests; print('\\n'.join(digests()))"
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (child.communicate()[0].splitlines() for child in children)
    assert [child.returncode for child in children] == [0, 0]
    assert len(first) == 8 and first == second
