"""Damaged tokenizer files of every kind are refused or used: never a crash or a hang.

A longer run: DAMAGED_FILES=20000 python -m pytest tests/tokenizers/damaged_test.py
"""

import os
import random
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from references import pairs

from executorch.extension.llm.tokenizers import load_bytes

COUNT = int(os.environ.get("DAMAGED_FILES", "30"))
NUMBERS = (b"0", b"-1", b"4294967295", b"9223372036854775807", b"1e999", b"null", b"[]", b'""')


def llama2c() -> bytes:
    pieces = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % b for b in range(256)), b" ", b"a", b" a"]
    body = b"".join(struct.pack("<fi", -float(i), len(p)) + p for i, p in enumerate(pieces))
    return struct.pack("<4i", len(pieces), 1, 2, 8) + body


def damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(changed))
        # The front of a file holds its structure, the rest is mostly vocabulary.
        at = at if rng.random() < 0.5 else at % min(len(changed), 2000)
        kind = rng.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at : at + rng.randint(1, 50)] = b""
        elif kind == 2:
            changed[at : at + rng.randint(0, 4)] = rng.choice(NUMBERS)
        elif kind == 3:
            changed[at:at] = changed[at : at + rng.randint(1, 100)]
        else:
            changed[at : at + 4] = rng.randbytes(4)
        if not changed:
            break
    return bytes(changed)


def try_one(data: bytes) -> bool:
    try:
        tokenizer = load_bytes(data)
    except ValueError:
        return False
    for text in ("Hello, wörld <|x|> 123", "a" * 300, "\x00\ufffd🙂"):
        try:
            tokens = tokenizer.encode(text, bos=1, eos=1)
            tokenizer.decode(tokens, skip_special_tokens=True)
            for token in tokens[:4]:
                tokenizer.token_bytes(token)
        except ValueError:
            pass
    return True


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("tokenizers")
    list(pairs(folder))
    kept = [f for f in sorted(folder.iterdir()) if f.suffix in (".json", ".model", ".tiktoken")]
    return {"llama2.c": llama2c(), **{f.name: f.read_bytes() for f in kept}}


def test_damaged_files_are_refused_or_used(files):
    rng = random.Random(0)
    used = 0
    for data in files.values():
        assert try_one(data)
        used += sum(try_one(damaged(data, rng)) for _ in range(COUNT))
        used += try_one(data[: rng.randrange(len(data))])
    assert 0 < used < len(files) * (COUNT + 1)
