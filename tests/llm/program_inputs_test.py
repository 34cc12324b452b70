"""`executorch generate` on models that are told more of each token than its id."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import make_incremental, to_edge
from tests.built import COMMAND, needs
from tests.incremental.models import HEADS, MOST_TOKENS, VOCABULARY, WIDTH, Model

pytestmark = needs(COMMAND)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
PROMPT = "hello"


class Told(Model):
    """Positions, a mask and segments are given. A mask of zeros, or positions that begin elsewhere,
    give another text."""

    def __init__(self) -> None:
        super().__init__()
        self.segment = nn.Embedding(2, WIDTH)

    def run(self, ids: Tensor, keep: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        n = ids.shape[1]
        x = self.embedding(ids) + self.position(positions) + self.segment(segments)
        i = torch.arange(n)
        mask = (i[None, :] <= i[:, None]) & keep.bool()[:, None, None, :]
        for qkv, out in self.layers:  # type: ignore[misc]
            parts = qkv(self.norm(x)).split(WIDTH, 2)
            q, k, v = (t.view(1, n, HEADS, WIDTH // HEADS).transpose(1, 2) for t in parts)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + out(y.transpose(1, 2).reshape(1, n, WIDTH))
        return self.head(self.norm(x)[:, -1])


class LikeTransformers(Told):
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor,
        token_type_ids: Tensor,
    ) -> Tensor:
        return self.run(input_ids, attention_mask, position_ids, token_type_ids)

    def inputs(self, ids: Tensor) -> tuple[Tensor, ...]:
        ones = torch.ones_like(ids)
        return ids, ones, ones.cumsum(1) - 1, torch.zeros_like(ids)


class MaskFirst(Told):
    """Other types, in another order; positions are a vector."""

    def forward(self, key_padding_mask: Tensor, pos: Tensor, tokens: Tensor) -> Tensor:
        segments = torch.zeros_like(tokens)
        return self.run(tokens, ~key_padding_mask, pos[None], segments)

    def inputs(self, ids: Tensor) -> tuple[Tensor, ...]:
        positions = torch.arange(ids.shape[1], dtype=torch.int32)
        return torch.zeros_like(ids, dtype=torch.bool), positions, ids


class Positions(Told):
    """The form of a program over caches, without any."""

    def forward(self, tokens: Tensor, input_pos: Tensor) -> Tensor:
        ones = torch.ones_like(tokens)
        return self.run(tokens, ones, input_pos[None], ones - 1)

    def inputs(self, ids: Tensor) -> tuple[Tensor, ...]:
        return ids, torch.arange(ids.shape[1])


class Flat(Told):
    """Ids without a batch."""

    def forward(self, tokens: Tensor) -> Tensor:
        ids = tokens[None]
        return self.run(ids, torch.ones_like(ids), torch.arange(tokens.shape[0])[None], 0 * ids)

    def inputs(self, ids: Tensor) -> tuple[Tensor, ...]:
        return (ids[0],)


class Unknown(Told):
    def forward(self, tokens: Tensor, extra: Tensor) -> Tensor:
        return self.run(tokens, extra, torch.arange(tokens.shape[1])[None], 0 * tokens)

    def inputs(self, ids: Tensor) -> tuple[Tensor, ...]:
        return ids, torch.ones_like(ids)


def made(kind: type[Told]) -> Told:
    torch.manual_seed(3)
    return kind().eval()


def exported(model: Told, incremental: bool) -> bytes:
    inputs = model.inputs(torch.zeros(1, 9, dtype=torch.int64))
    tokens = Dim("tokens", max=MOST_TOKENS)
    program = export(model, inputs, dynamic_shapes=tuple({x.dim() - 1: tokens} for x in inputs))
    program = make_incremental(program) if incremental else program
    return to_edge(program).to_executorch().buffer


def greedy(model: Told, n: int) -> str:
    ids = [LETTERS.index(c) for c in PROMPT]
    with torch.no_grad():
        for _ in range(n):
            logits = model(*model.inputs(torch.tensor([ids])))[0]
            logits[len(LETTERS)] = -torch.inf
            ids.append(int(logits.argmax()))
    return "".join(LETTERS[i] for i in ids[len(PROMPT) :])


def run(folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    vocabulary = {letter: i for i, letter in enumerate((*LETTERS, "<|endoftext|>"))}
    assert len(vocabulary) == VOCABULARY
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    command = [COMMAND, "generate", *arguments, "--tokenizer", "vocab.json", "--prompt", PROMPT]
    options = ["--temperature", 0, "--bias", f"{len(LETTERS)}:-1e9", "--tokens", 30, "--json"]
    return subprocess.run(
        [str(part) for part in (*command, *options)], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize("incremental", [False, True])
@pytest.mark.parametrize("kind", [LikeTransformers, MaskFirst, Positions, Flat])
def test_masks_and_positions_are_given(tmp_path: Path, kind: type[Told], incremental: bool) -> None:
    (tmp_path / "model.pte").write_bytes(exported(made(kind), incremental))
    done = run(tmp_path, "model.pte")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == greedy(made(kind), 30)


def test_an_input_of_unknown_meaning_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(exported(made(Unknown), False))
    done = run(tmp_path, "model.pte")
    assert done.returncode == 1
    assert "its input 1 (extra) is Long [1, 40]" in done.stderr
    assert "attention_mask, key_padding_mask, position_ids or token_type_ids" in done.stderr


def test_a_stripped_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(exported(made(LikeTransformers), False))
    strip = [str(COMMAND), "strip", "model.pte", "--output", "stripped.pte"]
    subprocess.run(strip, cwd=tmp_path, check=True, capture_output=True)
    done = run(tmp_path, "stripped.pte")
    assert done.returncode == 1
    assert "its input 1 is Long [1, 40] and has no name (was it stripped?)" in done.stderr
