"""Megabytes a second of our tokenizers and of the reference libraries, in turns, on one thread.
Processor time counts, so that other processes disturb little.

python tests/bench/tokenizing.py [--rounds N] [--only WORD]    # ./dev bench tokenizers

The file is not called tokenizers.py: scripts in this folder import the package of that name.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1] / "tokenizers")
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from references import corpus, pairs  # noqa: E402


def seconds(encode, text: str) -> float:
    start = time.process_time()
    encode(text)
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    text = corpus()
    size = len(text.encode()) / 1e6
    print(f"{'tokenizer':<32}{'ours MB/s':>11}{'reference':>11}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, ours, reference, *_ in pairs(Path(folder)):
            if options.only not in name:
                continue
            times = [
                (seconds(ours.encode, text), seconds(reference, text))
                for _ in range(options.rounds)
            ]
            mine, theirs = (statistics.median(column) for column in zip(*times, strict=True))
            print(
                f"{name:<32}{size / mine:>11.1f}{size / theirs:>11.1f}{theirs / mine:>8.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
