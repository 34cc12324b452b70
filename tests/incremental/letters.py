"""Attention by torch.einsum, with groups of heads, mixed heads and states that grow."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import HEADS, WIDTH, Model, _causal

SIZE, GROUPS = WIDTH // HEADS, 2


def weights_of(scores: Tensor, n: int) -> Tensor:
    return F.softmax(scores.masked_fill(~_causal(n), float("-inf")), -1)


class GroupsOfHeads(Model):
    """Two heads of queries for each of keys; tokens before heads."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        q = q.transpose(1, 2).reshape(1, n, GROUPS, HEADS // GROUPS, SIZE)
        k, v = (t[:, :GROUPS].transpose(1, 2) for t in (k, v))
        weights = weights_of(torch.einsum("bqgrd,bkgd->bgrqk", q, k), n)
        y = torch.einsum("bgrqk,bkgd->bqgrd", weights, v)
        return y.reshape(1, n, HEADS, SIZE).transpose(1, 2)


class MixedHeads(Model):
    """Before the softmax and after it; keys are queries; positions are a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.randn(HEADS, HEADS))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = torch.einsum("...qd, ...kd -> ...qk", q, q)
        scores = torch.einsum("gh,bhqk->bgqk", self.mix, scores)
        weights = torch.einsum("gh,bhqk->bgqk", self.mix, weights_of(scores, n))
        rotated = torch.einsum("td,bhtd->bhtd", torch.arange(n)[:, None].cos().expand(n, SIZE), v)
        return torch.einsum("bhqk,bhkd->bhqd", weights, rotated)


class StateThatGrows(Model):
    """Linear attention by a sum of the products of keys and values so far."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        state = torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(2)
        return torch.einsum("bhnd,bhnde->bhne", F.elu(q) + 1, state) * 0.1


class StateOfAll(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return torch.einsum("bhqd,bhde->bhqe", q, torch.einsum("bhkd,bhke->bhde", k, v))


class ValuesOfQueries(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        weights = weights_of(torch.einsum("bhqd,bhkd->bhqk", q, k), n)
        return torch.einsum("bhqk,bhqd->bhkd", weights, v)


class HeadsMixedAfterMask(Model):
    """What is low in one head takes nothing out of a sum of heads that is another's."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e9)
        mix = torch.eye(HEADS).flip(0) - torch.eye(HEADS)
        return F.softmax(torch.einsum("bhqk,hg->bgqk", scores, mix), -1) @ v


class DiagonalOfScores(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return v * torch.einsum("bhtt->bht", q @ k.transpose(2, 3))[..., None]


CAUSAL_LETTERS: list[type[nn.Module]] = [GroupsOfHeads, MixedHeads, StateThatGrows]
NOT_CAUSAL_LETTERS: dict[Any, str] = {
    StateOfAll: r"\(einsum.default\): it sums over tokens, but is no attention",
    ValuesOfQueries: r"\(einsum.default\): it sums over tokens, but is no attention",
    HeadsMixedAfterMask: "no mask keeps a token from attending to later ones",
    DiagonalOfScores: "has one letter for two dims",
}
