"""Compare our tokenizers with the reference libraries on random strings.

python tests/tokenizers/differential.py [STRINGS] [--only WORD] [--seed N]

STRINGS (default 1000000) are divided among all tokenizers. A tenth of them are bytes that are no
UTF-8. What the tokens spell is compared, too, and what random tokens spell. A difference is printed
with a shortest string that shows it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent))
from references import Pair, corpus, pairs

Text = TypeVar("Text", str, bytes, list[int])

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
    "\u0d40",
    "a\u0589\u0561\u0953",
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
                parts.append(rng.randbytes(rng.randint(1, 6)).decode("utf-8", "replace"))
        return "".join(parts)

    def damaged(self) -> bytes:
        """Text with a few bytes taken, changed or added."""
        text = bytearray(self.one().encode())
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randrange(len(text) + 1)
            bad = self.rng.choice([0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF])
            text[at : at + self.rng.randint(0, 2)] = bytes([bad] * self.rng.randint(0, 2))
        return bytes(text)


def shortest(given: Text, differ: Callable[[Text], bool]) -> Text:
    """A part of `given` on which both still differ, from which nothing can be taken."""
    i = 0
    while i < len(given):
        less = given[:i] + given[i + 1 :]
        if less and differ(less):
            given = less
        else:
            i += 1
    return given


def differences(pair: Pair, strings: Strings, count: int, most: int = 3) -> list[str]:
    ours, found = pair.ours, []
    shown = pair.shown
    decode = ours.decode if shown is None else lambda tokens: shown(ours.decode_bytes(tokens))

    def look(given: Text, ours_says: Callable, reference_says: Callable) -> None:
        if ours_says(given) != reference_says(given):
            less = shortest(given, lambda g: ours_says(g) != reference_says(g))
            found.append(f"{less!a}: ours {ours_says(less)!a}, reference {reference_says(less)!a}")

    for i in range(count):
        if i % 10 == 9:
            look(strings.damaged(), ours.encode, pair.encode_bytes)
            continue
        text = strings.one()
        look(text, ours.encode, pair.encode)
        tokens = ours.encode(text)
        if i % 5 == 0:
            tokens = strings.rng.choices(range(ours.vocab_size), k=strings.rng.randint(1, 12))
        look(tokens, decode, pair.decode)
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
        chosen = [p for p in pairs(Path(folder)) if options.only in p.name]
        each = options.strings // len(chosen)
        for pair in chosen:
            found = differences(pair, Strings(options.seed), each)
            verdict = "DIFFERENT" if found else "equal"
            print(f"{pair.name}: {each} strings, {verdict}", flush=True)
            for line in found:
                print("   ", line)
            failed += bool(found)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
