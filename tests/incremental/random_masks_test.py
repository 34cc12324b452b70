"""Masks made at random of the length and of what tokens say: refused, or right in each call."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from executorch.exir import NotCausalError, make_incremental
from tests.incremental.incremental_test import TOLERANCE, made, texts
from tests.incremental.inputs_test import program_of
from tests.incremental.models import MOST_TOKENS, _causal
from tests.incremental.written_masks_test import LOWEST, Written

SEEDS = 8  # of a test
HIDES = [-1e9, -1e4, LOWEST]


@dataclass(frozen=True)
class Made:
    """A mask, and the text by which a failure names it."""

    text: str
    value: Callable[[Any, int], Tensor]


LEAVES = [
    Made("causal", lambda m, n: _causal(n)),
    Made("keys", lambda m, n: m.said[:, None, None, :]),
    Made("queries", lambda m, n: m.said[:, None, :, None]),
    Made("same", lambda m, n: m.said[:, None, :, None] == m.said[:, None, None, :]),
    Made("near", lambda m, n: torch.arange(n)[None, :] > torch.arange(n)[:, None] - 3),
]
OF_TWO_BOOLS = {"&": torch.logical_and, "|": torch.logical_or, "^": torch.logical_xor}
OF_NUMBERS = {"== 0": torch.eq, "!= 0": torch.ne, "> 0": torch.gt}
OF_TWO = {
    "*": torch.mul, "+": torch.add, "-": torch.sub, "max": torch.maximum, "min": torch.minimum,
}  # fmt: skip


def of_two(name: str, f: Any, a: Made, b: Made) -> Made:
    return Made(f"({a.text} {name} {b.text})", lambda m, n: f(a.value(m, n), b.value(m, n)))


def bools(source: random.Random, depth: int) -> Made:
    kind = source.random()
    if depth == 0 or kind < 0.4:
        return source.choice([LEAVES[0], LEAVES[0], *LEAVES])
    if kind < 0.6:
        a = bools(source, depth - 1)
        return Made(f"~{a.text}", lambda m, n: ~a.value(m, n))
    if kind < 0.7:
        name, a = source.choice([*OF_NUMBERS]), numbers(source, depth - 1)
        return Made(f"({a.text} {name})", lambda m, n: OF_NUMBERS[name](a.value(m, n), 0))
    name = source.choice([*OF_TWO_BOOLS])
    return of_two(name, OF_TWO_BOOLS[name], bools(source, depth - 1), bools(source, depth - 1))


def numbers(source: random.Random, depth: int) -> Made:
    kind = source.random()
    if depth == 0 or kind < 0.3:
        a = bools(source, max(depth - 1, 0))
        return Made(f"float({a.text})", lambda m, n: a.value(m, n).float())
    a = numbers(source, depth - 1)
    if kind < 0.5:
        return Made(f"(1 - {a.text})", lambda m, n: 1.0 - a.value(m, n))
    if kind < 0.7:
        by = source.choice([*HIDES, 1e9, -1.0, 2.0, -50.0])
        return Made(f"({a.text} * {by:g})", lambda m, n: a.value(m, n) * by)
    name = source.choice([*OF_TWO])
    return of_two(name, OF_TWO[name], a, numbers(source, depth - 1))


def step(source: random.Random) -> Made:
    """What becomes of scores."""
    kind, depth = source.random(), source.choice([1, 2, 3])
    if kind < 0.4:
        return of_two("+", torch.add, SCORES, numbers(source, depth))
    if kind < 0.5:
        return of_two("-", torch.sub, SCORES, numbers(source, depth))
    condition, low = bools(source, depth), source.choice([*HIDES, -50.0])
    return Made(
        f"where({condition.text}, scores, {low:g})",
        lambda m, n: torch.where(condition.value(m, n), m.given, low),
    )


SCORES = Made("scores", lambda m, n: m.given)
HIDDEN = Made("float(~causal) * -1e9", lambda m, n: (~_causal(n)).float() * -1e9)


def steps(source: random.Random) -> list[Made]:
    """One of them, in most cases, such as would hide later tokens."""
    causal = Made("float(causal)", lambda m, n: _causal(n).float())
    seen = of_two("*", torch.mul, causal, numbers(source, 1))
    low = Made(f"(1 - {seen.text}) * -1e9", lambda m, n: (1.0 - seen.value(m, n)) * -1e9)
    hides = [of_two("+", torch.add, SCORES, each) for each in (low, HIDDEN)]
    others = [step(source) for _ in range(source.choice([0, 1, 2]))]
    chosen = [*others, *source.choice([[hides[0]], [hides[0]], [hides[1]], []])]
    source.shuffle(chosen)
    return chosen


class Random(Written):
    steps: list[Made]

    def masked(self, scores: Tensor, n: int) -> Tensor:
        self.given = scores
        for each in self.steps:
            self.given = each.value(self, n)
        return self.given


def is_right(model: Random, seed: int) -> bool:
    """Whether the proof succeeded; then results are the model's, which are numbers once."""
    try:
        module = make_incremental(program_of(model)).module()
    except NotCausalError:
        return False
    source, said, compared = random.Random(seed), [True] * MOST_TOKENS, False
    for ids in texts(14):
        if source.random() < 0.4:
            padding = source.choice([0, 0, 1, 2, len(ids)])
            said = [i >= padding and source.random() < 0.8 for i in range(MOST_TOKENS)]
        given = (torch.tensor([ids]), torch.tensor([said[: len(ids)]]))
        with torch.no_grad():
            expected, found = model(*given), module(*given)
        if not expected.isfinite().all():
            continue
        compared = True
        torch.testing.assert_close(
            found,
            expected,
            rtol=TOLERANCE,
            atol=TOLERANCE,
            msg=lambda m: f"{m}\n{[each.text for each in model.steps]}",
        )
    return compared


@pytest.mark.parametrize("first", range(0, 2 * SEEDS, SEEDS))
def test_masks_are_refused_or_right(first: int) -> None:
    right = 0
    for seed in range(first, first + SEEDS):
        model = made(Random)
        assert isinstance(model, Random)
        model.steps = steps(random.Random(seed))
        right += is_right(model, seed)
    assert right >= SEEDS // 4
