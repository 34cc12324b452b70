"""500 tokens, each the likeliest: incremental programs choose those that the model chooses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from executorch.exir import make_incremental, to_edge, to_edge_transform_and_lower
from executorch.runtime import Runtime
from tests.incremental import models
from tests.incremental.incremental_test import check, exported, first, made
from tests.incremental.models import Alibi, Model, Rotary, SoftCap, Triangle, Window

TOKENS = 500
LONGEST = 520  # of the prompt and those
FAMILIES = (Model, Triangle, SoftCap, Window, Alibi, Rotary)


def long_program(
    kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> tuple[nn.Module, ExportedProgram]:
    monkeypatch.setattr(models, "BLOCK", LONGEST + 1)
    model = made(kind)
    shapes = ({1: Dim("tokens", max=LONGEST)},)
    return model, make_incremental(export(model, (torch.arange(9)[None],), dynamic_shapes=shapes))


def likeliest(run: Callable[[Tensor], Tensor], ids: list[int]) -> int:
    return int(first(run(torch.tensor([ids]))).flatten().argmax())


def generate(model: nn.Module, run: Callable[[Tensor], Tensor]) -> None:
    """The text is edited in its middle, and cut, on the way."""
    ids = [3, 1, 4, 1, 5]
    with torch.no_grad():
        for i in range(TOKENS):
            if i % 170 == 100:
                ids[len(ids) // 2] = (ids[len(ids) // 2] + 1) % models.VOCABULARY
            if i % 170 == 150:
                ids = ids[:-7]
            found = likeliest(run, ids)
            # The model is asked each time where the text is young, then now and then: it is slow.
            if i % 170 >= 100 or i % 10 == 0:
                assert found == likeliest(model, ids), i
            ids.append(found)


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize("kind", FAMILIES, ids=lambda k: k.__name__)
def test_greedy_text_is_that_of_the_model(
    kind: type[nn.Module], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, incremental = long_program(kind, monkeypatch)
    if backend == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        edge = to_edge_transform_and_lower(incremental, partitioner=[XnnpackPartitioner()])
    else:
        edge = to_edge(incremental)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    generate(model, lambda ids: method.execute([ids]))


def test_a_mask_that_is_broken_on_purpose_is_noticed() -> None:
    """What the other tests compare with would not hide a mask that looks ahead, or not far enough
    back: prompts are longer than a token, so that there are keys to hide."""
    model = made(Model)
    for relation in (torch.ops.aten.lt.Tensor, torch.ops.aten.ge.Tensor):
        program = make_incremental(exported(model))
        masks = program.graph.find_nodes(op="call_function", target=torch.ops.aten.le.Tensor)
        assert len(masks) == 1
        masks[0].target = relation
        program.graph_module.recompile()
        with pytest.raises(AssertionError):
            check(model, program.module(), 20)


def test_texts_that_are_too_long_to_look_at_each_pair_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from executorch.exir import NotCausalError
    from executorch.exir.incremental import lengths, masks

    for module in (lengths, masks):
        monkeypatch.setattr(module, "MOST_ELEMENTS", models.MOST_TOKENS**2 - 1)
    with pytest.raises(NotCausalError, match="too many to look at each"):
        make_incremental(exported(made(Triangle)))
    make_incremental(exported(made(Model)))  # it says is_causal


def test_lengths_that_are_too_many_to_try_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from executorch.exir import NotCausalError
    from executorch.exir.incremental import lengths

    class Flipped(Model):
        """Positions that are the same for every length, though not by their structure."""

        def positions(self, n: int) -> Tensor:
            return self.position(torch.arange(n).flip(0).flip(0))

    model = made(Flipped)
    check(model, make_incremental(exported(model)).module(), 5)
    monkeypatch.setattr(lengths, "_TRIAL_ELEMENTS", 1000)
    with pytest.raises(NotCausalError, match=r"40 lengths are too many to try all.*flip"):
        make_incremental(exported(model))
