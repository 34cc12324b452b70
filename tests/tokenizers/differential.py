"""Compare our tokenizers with the reference libraries on random strings.

python tests/tokenizers/differential.py [STRINGS] [--only WORD] [--seed N]

STRINGS (default 1000000) are divided among all tokenizers. A difference is printed with a
shortest string that shows it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from references import Encode, corpus, pairs

from executorch.extension.llm.tokenizers import Tokenizer

PIECES = [
    "<|x|>",
    "<mask>",
    " <mask> ",
    "added",
    " added ",
    "New Token  ",
    "Ünïcode",
    "<|begin|>",
    "<|endoftext|>",
    "<0x41>",
    "▁",
    "'s",
    "'LL",
    "'ſ",
    "don't",
    "\r\n",
    "\n\n  ",
    "    ",
    "\u3000",
    "\u00a0",
    "\x00",
    "\x1f",
    "\u200d",
    "👩‍👩‍👧",
    "🇩🇪",
    "🙂",
    "e\u0301",
    "\u0323\u0307",
    "한국",
    "\u1112\u1161\u11ab",
    "日本語",
    "ｶﾞ",
    "ﬁ",
    "İ",
    "Σς",
    "١٢٣",
    "12345",
    "http://a.b/c?d=e",
    "…!!",
    "//\n",
    "\ufffd",
    "\u0e33",
]
RANGES = [
    (0x20, 0x7F),
    (0x20, 0x7F),
    (0, 0x20),
    (0x80, 0x250),
    (0x300, 0x370),
    (0x370, 0x530),
    (0x590, 0x700),
    (0x900, 0xE80),
    (0x1100, 0x1200),
    (0x2000, 0x2100),
    (0x3000, 0x3400),
    (0x4E00, 0xA000),
    (0xA000, 0xD7FF),
    (0xE000, 0xFFFF),
    (0x10000, 0x20000),
    (0x1F300, 0x1FB00),
]


class Strings:
    """Random text: cuts of the corpus, pieces that are hard, characters of all scripts."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.text = corpus()

    def one(self) -> str:
        rng = self.rng
        parts = []
        for _ in range(rng.randint(1, 5)):
            kind = rng.random()
            if kind < 0.35:
                start = rng.randrange(len(self.text) - 40)
                parts.append(self.text[start : start + rng.randint(1, 40)])
            elif kind < 0.6:
                parts.append(rng.choice(PIECES))
            elif kind < 0.85:
                low, high = rng.choice(RANGES)
                parts.append("".join(map(chr, rng.choices(range(low, high), k=rng.randint(1, 5)))))
            elif kind < 0.95:
                parts.append(rng.choice(" \n\ta1!é") * rng.randint(2, 60))
            else:
                # What is no UTF-8 is read as U+FFFD by both sides.
                parts.append(rng.randbytes(rng.randint(1, 6)).decode("utf-8", "replace"))
        return "".join(parts)


def shortest(text: str, ours: Tokenizer, reference: Encode) -> str:
    """A part of `text` on which both still differ, from which no character can be taken."""
    i = 0
    while i < len(text):
        less = text[:i] + text[i + 1 :]
        if less and ours.encode(less) != reference(less):
            text = less
        else:
            i += 1
    return text


def differences(
    ours: Tokenizer, reference: Encode, strings: Strings, count: int, most: int = 3
) -> list[str]:
    found = []
    for _ in range(count):
        text = strings.one()
        if ours.encode(text) != reference(text):
            less = shortest(text, ours, reference)
            found.append(f"{less!a}: ours {ours.encode(less)}, reference {reference(less)}")
            if len(found) >= most:
                break
    return found


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("strings", nargs="?", type=int, default=1000000)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(args)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        chosen = [p for p in pairs(Path(folder)) if options.only in p[0]]
        each = options.strings // len(chosen)
        for name, ours, reference in chosen:
            found = differences(ours, reference, Strings(options.seed), each)
            print(f"{name}: {each} strings, {'equal' if not found else 'DIFFERENT'}", flush=True)
            for line in found:
                print("   ", line)
            failed += bool(found)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
