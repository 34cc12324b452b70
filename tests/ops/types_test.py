"""Operands of different types promote as in eager PyTorch, and bad arguments are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.ops.oracle import expected, overload, tolerance
from tests.ops.program import Call, run
from tests.ops.samples import ALL, Maker

NUMBERS = [True, 3, 1.5]
BINARY = [
    ("add.out", [1]),
    ("mul.out", []),
    ("div.out", []),
    ("maximum.out", []),
    ("atan2.out", []),
    ("lt.Tensor_out", []),
    ("logical_and.out", []),
]
WITH_NUMBER = [
    ("add.Scalar_out", [1]),
    ("mul.Scalar_out", []),
    ("div.Scalar_out", []),
    ("ge.Scalar_out", []),
]


def check(name: str, samples: list[list[Any]]) -> None:
    """Each sample, with eager in the very same types as the oracle."""
    out = overload(name)
    wants = [expected(out, args, torch.float32) for args in samples]
    calls = [Call(f"aten::{name}", a, w) for a, w in zip(samples, wants, strict=True)]
    for args, (got,), (want,) in zip(samples, run(calls), wants, strict=True):
        rtol, atol = tolerance(args, want)
        torch.testing.assert_close(
            got, want, rtol=rtol, atol=atol, msg=lambda text, args=args: f"{name} on {args}: {text}"
        )


def pairs(low: float = 1) -> list[tuple[torch.Tensor, torch.Tensor]]:
    made = []
    for a in ALL:
        for b in ALL:
            x, y = Maker(a), Maker(b)
            made += [(x(2, 3, low=low), y(3, low=low)), (x(3, low=low), y(low=low))]
    return made


@pytest.mark.parametrize(("name", "more"), BINARY, ids=[name for name, _ in BINARY])
def test_any_two_types_promote_as_in_eager(name: str, more: list[Any]) -> None:
    check(name, [[a, b, *more] for a, b in pairs()])


@pytest.mark.parametrize(("name", "more"), WITH_NUMBER, ids=[name for name, _ in WITH_NUMBER])
def test_a_number_promotes_as_in_eager(name: str, more: list[Any]) -> None:
    tensors = [Maker(dtype)(*shape, low=1) for dtype in ALL for shape in [(3,), ()]]
    check(name, [[t, n, *more] for t in tensors for n in NUMBERS])


def test_a_condition_takes_no_part_in_promotion() -> None:
    mask = Maker(torch.bool).mask(3)
    check("where.self_out", [[mask, a, b] for a, b in pairs()])


REFUSED: list[tuple[str, list[Any], torch.Tensor, str]] = [
    ("add.out", [torch.ones(2, 3), torch.ones(4), 1], torch.ones(2, 3), "cannot broadcast"),
    ("add.out", [torch.ones(3), torch.ones(3), 1], torch.ones(1), "out cannot hold"),
    ("add.out", [torch.ones(3), torch.ones(3), 1], torch.ones(3).int(), "cannot be stored"),
    ("sum.IntList_out", [torch.ones(3), [1], False, None], torch.ones(()), "out of range"),
    ("div.out_mode", [torch.ones(3), torch.ones(3), "up"], torch.ones(3), "rounding_mode is 'up'"),
    ("gelu.out", [torch.ones(3), "fast"], torch.ones(3), "'none' or 'tanh'"),
    ("amax.out", [torch.ones(2, 0), [1], False], torch.ones(2), "have no elements"),
    ("view_copy.out", [torch.ones(6), [4, -1]], torch.ones(4, 1), ""),
    ("mm.out", [torch.ones(2, 3), torch.ones(2, 3)], torch.ones(2, 3), ""),
    ("cat.out", [[torch.ones(2, 3), torch.ones(2, 4)], 0], torch.ones(4, 3), ""),
    ("index_select.out", [torch.ones(3), 0, torch.tensor([3])], torch.ones(1), ""),
    ("gather.out", [torch.ones(3), 0, torch.tensor([-4]), False], torch.ones(1), ""),
    (
        "embedding.out",
        [torch.ones(3, 1), torch.tensor([5]), -1, False, False],
        torch.ones(1, 1),
        "",
    ),
]


@pytest.mark.parametrize(("name", "args", "out", "reason"), REFUSED)
def test_bad_arguments_are_refused_with_the_reason(
    name: str, args: list[Any], out: torch.Tensor, reason: str
) -> None:
    packet = name.partition(".")[0]
    with pytest.raises(RuntimeError, match=f"(?s){packet}.*{reason}"):
        run([Call(f"aten::{name}", args, [out])])
