"""Print stripped sizes of an application (Module, tensors, the program's operators) that runs one
model, built against the installed package: python tests/size/models.py BUILD [--types]

Operators are those of build/dev: for speed, several instruction sets, all element types. With
--types they are compiled for the model's element types, which takes minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.export import export

from executorch.exir import to_edge

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples" / "nanogpt"), str(ROOT / "tests" / "bench")]
from _nets import MobileNetV2  # noqa: E402
from model import GPT, GPTConfig  # noqa: E402

PUBLISHED = (
    "upstream publishes about 50,000 for its runtime without operators, and none with a model's"
)


def write_programs(folder: Path) -> list[Path]:
    """The operators do not depend on the number of layers and their widths."""
    gpt = GPT(GPTConfig(block_size=64, vocab_size=100, n_layer=2, n_head=2, n_embd=32))
    mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    paths = []
    for name, model, example in (
        ("mlp", mlp, torch.zeros(1, 64)),
        ("gpt", gpt, torch.zeros(1, 16, dtype=torch.int64)),
        ("mobilenet_v2", MobileNetV2(), torch.zeros(1, 3, 224, 224)),
    ):
        program = to_edge(export(model.eval(), (example,))).to_executorch()
        paths.append(folder / f"{name}.pte")
        program.save(str(paths[-1]))
    return paths


def stripped_size(binary: Path) -> int:
    copy = binary.with_suffix(".stripped")
    subprocess.run(["strip", "--strip-all", "-o", copy, binary], check=True)
    return copy.stat().st_size


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("--types", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prefix = folder / "prefix"
        run("cmake", "--install", args.build, "--prefix", prefix, "--component", "executorch")
        sizes = {}
        for program in write_programs(folder):
            out = folder / program.stem
            options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPROGRAM={program}"]
            options += [f"-DPYTHON_EXECUTABLE={sys.executable}", f"-DFOR_TYPES={args.types}"]
            run("cmake", "-S", ROOT / "tests" / "install", "-B", out, "-G", "Ninja", *options)
            run("ninja", "-C", out, "selected", "whole")
            sizes[program.stem] = stripped_size(out / "selected")
            sizes["everything"] = stripped_size(out / "whole")
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        print(f"operators of {name:16}{size:>12,} bytes", flush=True)
    print(PUBLISHED)


if __name__ == "__main__":
    main()
