"""Masks over long texts: shown by their structure to be the same for every number of tokens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from executorch.exir import NotCausalError, make_incremental
from executorch.exir.incremental import lengths
from tests.incremental.incremental_test import check, exported
from tests.incremental.models import Model

LOW = -1e9


def pairs(n: int) -> tuple[Tensor, Tensor]:
    return torch.arange(n)[:, None], torch.arange(n)


def full(*shape: int) -> Tensor:
    return torch.full(shape, LOW).triu(1)


def in_buckets(n: int) -> Tensor:
    row, col = pairs(n)
    distance = row - col
    far = 4 + (distance.clamp(min=1) / 4).log().long()
    return torch.where(distance < 0, LOW, torch.where(distance < 4, distance, far) * -0.1)


def of_grid(n: int) -> Tensor:
    row, col = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    return torch.where(col <= row, torch.zeros(()), torch.tensor(LOW))


MASKS: dict[str, Callable[[int], Tensor]] = {
    "numbers": lambda n: torch.where(pairs(n)[1] <= pairs(n)[0], 0.0, LOW),
    "blocks": lambda n: torch.where(
        (pairs(n)[1] <= pairs(n)[0]) & (pairs(n)[0] // 8 == pairs(n)[1] // 8), 0.0, LOW
    ),
    "buckets": in_buckets,
    "grid": of_grid,
    "filled": lambda n: torch.zeros(n, n).masked_fill(full(n, n) < 0, torch.tensor(LOW)),
    "like another": lambda n: (pairs(n)[1].expand_as(full(n, n)) > pairs(n)[0]) * LOW,
    "repeated": lambda n: full(n, n)[None, None].repeat(1, 2, 1, 1).repeat(1, 2, 1, 1),
    "squeezed": lambda n: full(1, 1, n, n).squeeze(),
    "flattened": lambda n: full(1, 1, n, n).flatten(0, 1),
    "viewed": lambda n: torch.ones(n, n).tril().view(1, 1, n, n).sub(1) * -LOW,
    "diagonal": lambda n: full(n, n) * (1 - torch.eye(n)),
    "of a constant": lambda n: full(n, n) + torch.linspace(0, 1, 99)[pairs(n)[0] - pairs(n)[1]],
}


def model_of(mask: Callable[[int], Tensor]) -> Model:
    class Masked(Model):
        def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
            return F.softmax(q @ k.transpose(2, 3) + mask(n), -1) @ v

    torch.manual_seed(0)
    return Masked().eval()


@pytest.mark.parametrize("name", MASKS)
def test_masks_need_no_trial_of_all_lengths(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "_TRIAL_ELEMENTS", 0)
    model = model_of(MASKS[name])
    check(model, make_incremental(exported(model)).module(), 20)


def test_what_repeats_positions_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "_TRIAL_ELEMENTS", 0)
    with pytest.raises(NotCausalError, match="40 lengths .*, and positions are repeated"):
        make_incremental(exported(model_of(lambda n: full(n, n) + torch.arange(n).repeat(2)[:n])))
