"""Incremental programs against the models they were made of, in eager mode and in the runtime."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export
from torch.utils._pytree import tree_leaves

from executorch.exir import NotCausalError, make_incremental, to_edge, to_edge_transform_and_lower
from executorch.runtime import Runtime
from tests.incremental.models import (
    BY_LENGTH,
    CAUSAL,
    MOST_TOKENS,
    NOT_CAUSAL,
    VOCABULARY,
    Alibi,
    AllPositions,
    ByLength,
    Model,
    Rotary,
    Triangle,
    Window,
)

# Sums of 32 products, two layers, scores of order one.
TOLERANCE = 1e-5


def exported(model: nn.Module, example: int = 9) -> ExportedProgram:
    torch.manual_seed(0)
    ids = torch.randint(0, VOCABULARY, (1, example))
    return export(model.eval(), (ids,), dynamic_shapes=({1: Dim("tokens", max=MOST_TOKENS)},))


def made(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind().eval()


def texts(steps: int) -> Iterator[list[int]]:
    """A text that grows, is cut, is changed in the middle, or is another; all lengths."""
    source = random.Random(1)
    ids = [source.randrange(VOCABULARY) for _ in range(6)]
    for _ in range(steps):
        what = source.random()
        if what < 0.6 and len(ids) < MOST_TOKENS:
            ids = [*ids, source.randrange(VOCABULARY)]
        elif what < 0.75:
            ids = ids[: source.randrange(1, len(ids) + 1)]
        elif what < 0.9:
            ids = list(ids)
            ids[source.randrange(len(ids))] = source.randrange(VOCABULARY)
        else:
            ids = [
                source.randrange(VOCABULARY) for _ in range(source.randrange(1, MOST_TOKENS + 1))
            ]
        yield ids


def first(result: Tensor | tuple | list) -> Tensor:
    return result if isinstance(result, Tensor) else result[0]


def check(model: nn.Module, run: Callable[[Tensor], Tensor], steps: int = 60) -> None:
    for ids in texts(steps):
        given = torch.tensor([ids])
        expected = first(model(given))
        found = first(run(given))
        assert found.shape == expected.shape, ids
        torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("kind", CAUSAL, ids=lambda k: k.__name__)
def test_results_are_those_of_the_model(kind: type[nn.Module]) -> None:
    model = made(kind)
    check(model, make_incremental(exported(model)).module())


@pytest.mark.parametrize("kind", CAUSAL, ids=lambda k: k.__name__)
@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
def test_programs_run(kind: type[nn.Module], backend: str) -> None:
    model = made(kind)
    incremental = make_incremental(exported(model))
    if backend == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        edge = to_edge_transform_and_lower(incremental, partitioner=[XnnpackPartitioner()])
    else:
        edge = to_edge(incremental)
    program = Runtime.get().load_program(edge.to_executorch().buffer)
    method = program.load_method("forward")
    check(model, lambda ids: method.execute([ids]))


def check_refusal(kind: type[nn.Module], message: str, *files: str) -> None:
    """The error names a node and a line of one of the files; the program stays as it is."""
    program = exported(made(kind))
    before = str(program.graph)
    with pytest.raises(NotCausalError, match=message) as error:
        make_incremental(program)
    assert error.value.node_name in {n.name for n in program.graph.nodes}
    assert any(f"{file}:" in str(error.value) for file in files)
    assert str(program.graph) == before


@pytest.mark.parametrize("kind", NOT_CAUSAL, ids=lambda k: k.__name__)
def test_what_looks_ahead_is_refused_with_node_and_line(kind: type[nn.Module]) -> None:
    check_refusal(kind, NOT_CAUSAL[kind], "models.py")


@pytest.mark.parametrize("how", BY_LENGTH)
def test_what_the_number_of_tokens_changes_is_refused_with_node_and_line(how: str) -> None:
    place, change, operator = BY_LENGTH[how]
    torch.manual_seed(0)
    program = exported(ByLength(place, change))
    with pytest.raises(NotCausalError, match="changes with the number of tokens") as error:
        make_incremental(program)
    assert f"({operator}): " in str(error.value)
    assert error.value.node_name in {n.name for n in program.graph.nodes}
    assert "models.py:" in str(error.value)


def test_the_number_of_tokens_can_be_a_result_and_a_factor_of_the_last() -> None:
    class Counts(Triangle):
        def forward(self, ids: Tensor) -> Any:
            logits = super().forward(ids)
            last = logits[:, -1]
            return logits, ids.shape[1], ids.numel() * 2, last * (1 / ids.shape[1])

    model = made(Counts)
    program = to_edge(make_incremental(exported(model))).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    for n in (1, 4, 5, 9, 3):
        ids = torch.arange(n)[None]
        found, expected = method.execute([ids]), model(ids)
        assert found[1:3] == [n, 2 * n]
        for i in (0, 3):
            torch.testing.assert_close(found[i], expected[i], rtol=TOLERANCE, atol=TOLERANCE)


def test_numbers_that_cannot_be_made_are_refused_with_node_and_line() -> None:
    class LastByRounded(Model):
        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids) * round(ids.shape[1] / 3, 1)

    with pytest.raises(NotCausalError, match="which cannot be traced\n  at .*_test.py:"):
        make_incremental(exported(made(LastByRounded)))


def test_only_new_tokens_are_computed() -> None:
    """The caches of unchanged tokens are not written: poison in them would be seen."""
    model = made(Model)
    program = make_incremental(exported(model))
    module = program.module()
    ids = torch.arange(12)[None] % VOCABULARY
    module(ids[:, :10])
    caches = {n: b for n, b in module.named_buffers() if "cache" in n}
    assert len(caches) == 4
    kept = {n: b.clone() for n, b in caches.items()}
    module(ids)
    for name, cache in caches.items():
        assert torch.equal(cache[:, :, :10], kept[name][:, :, :10])
        assert not torch.equal(cache[:, :, 10:12], kept[name][:, :, 10:12])
    for cache in caches.values():
        cache[:, :, :12] = float("nan")
    assert module(ids).isnan().all()  # they are what the last token attends to
    assert not module(ids.flip(1)).isnan().any()  # another text: all is computed anew


def test_a_call_that_did_not_end_is_not_trusted() -> None:
    model = made(Model)
    module = make_incremental(exported(model)).module()
    ids = torch.arange(12)[None]
    module(ids)
    buffers = dict(module.named_buffers())
    next(b for n, b in buffers.items() if "kept" in n).zero_()
    for name, buffer in buffers.items():
        if "cache" in name:
            buffer.fill_(float("nan"))
    torch.testing.assert_close(module(ids), model(ids), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("number", "cache_dtype"), [(float("nan"), torch.float32), (float("inf"), torch.int8)]
)
@pytest.mark.parametrize("kind", [Model, Triangle, Window, AllPositions], ids=lambda k: k.__name__)
@pytest.mark.parametrize("runs", ["eager", "portable"])
def test_what_is_not_finite_is_forgotten_with_its_text(
    kind: type[nn.Module], runs: str, number: float, cache_dtype: torch.dtype
) -> None:
    """A mask hides a later token by weight zero, and zero times that is not zero."""
    model = made(kind)
    spoilt = 7
    with torch.no_grad():
        model.embedding.weight[spoilt] = number
    program = make_incremental(exported(model), cache_dtype=cache_dtype)
    run = program.module()
    if runs == "portable":
        loaded = Runtime.get().load_program(to_edge(program).to_executorch().buffer)
        method = loaded.load_method("forward")
        run = lambda ids: method.execute([ids])  # noqa: E731
    begun = [1, 2, 3, 4]
    texts = [begun, [*begun, spoilt], [*begun, spoilt, 5], [*begun, 5], [*begun, 5, 6], [1, 2]]
    for ids in [*texts, [1, spoilt], [1, 2, spoilt], [1, 2, 3]]:
        given = torch.tensor([ids])
        # Of the last token: what was computed of those before, the spoilt one cannot change.
        expected, found = first(model(given)).detach(), first(run(given)).detach()
        expected, found = (t[:, -1] if t.dim() == 3 else t for t in (expected, found))
        assert expected.isnan().all() == (spoilt in ids)
        step = 1 / 127 if cache_dtype == torch.int8 else TOLERANCE  # as above and below
        largest = float(expected.nan_to_num().abs().max())
        torch.testing.assert_close(found, expected, rtol=0, atol=step * largest, equal_nan=True)


def test_last_only_returns_the_last_position() -> None:
    model = made(AllPositions)
    module = make_incremental(exported(model), last_only=True).module()
    for ids in texts(20):
        found = module(torch.tensor([ids]))
        expected = model(torch.tensor([ids]))[:, -1:]
        torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


class CappedLogits(AllPositions):
    def forward(self, ids: Tensor) -> Tensor:
        return torch.tanh(super().forward(ids).double() / 3) * 3


class LogitsTwice(AllPositions):
    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = super().forward(ids)
        return logits, logits.softmax(-1)


@pytest.mark.parametrize(
    ("kind", "rows"), [(AllPositions, 1), (CappedLogits, 1), (LogitsTwice, None)]
)
def test_last_only_multiplies_one_row_by_the_vocabulary(
    kind: type[AllPositions], rows: int | None
) -> None:
    model = made(kind)
    program = make_incremental(exported(model), last_only=True)
    *_, last = program.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    n = last.meta["val"].shape[1]
    assert n == rows if rows else not isinstance(n, int)
    for ids in texts(20):
        found = tree_leaves(program.module()(torch.tensor([ids])))
        for got, want in zip(found, tree_leaves(model(torch.tensor([ids]))), strict=True):
            torch.testing.assert_close(got, want[:, -1:], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("kind", [Triangle, Alibi, Rotary, Model], ids=lambda k: k.__name__)
@pytest.mark.parametrize(
    ("dtype", "step"), [(torch.float16, 2**-10), (torch.bfloat16, 2**-7), (torch.int8, 1 / 127)]
)
@pytest.mark.parametrize("runs", ["eager", "portable"])
def test_smaller_caches_are_nearly_as_good(
    kind: type[nn.Module], dtype: torch.dtype, step: float, runs: str
) -> None:
    model = made(kind)
    program = make_incremental(exported(model), cache_dtype=dtype)
    caches = [t for n, t in program.state_dict.items() if "cache" in n]
    kept = sum(t.nbytes for t in caches if t.dtype == dtype)
    whole = sum(
        t.nbytes for n, t in make_incremental(exported(model)).state_dict.items() if "cache" in n
    )
    assert kept * 4 == whole * dtype.itemsize
    # Scales: one for eight numbers of a head.
    assert sum(t.nbytes for t in caches) <= kept + (whole / 8 if dtype == torch.int8 else 0)
    run = program.module()
    if runs == "portable":
        loaded = Runtime.get().load_program(to_edge(program).to_executorch().buffer)
        method = loaded.load_method("forward")
        run = lambda ids: method.execute([ids])  # noqa: E731
    for ids in texts(30):
        given = torch.tensor([ids])
        expected, found = first(model(given)), first(run(given))
        # Keys and values are wrong by half a step of the largest of a head, in two layers.
        assert (found - expected).abs().max() <= step * expected.abs().max()


def test_positions_are_slices_of_the_parameter_and_masks_are_computed() -> None:
    program = make_incremental(exported(made(Model)))
    assert not [n for n in program.state_dict if "table" in n]


def test_programs_without_token_ids_are_refused() -> None:
    class TwoInputs(Model):
        def forward(self, ids: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(ids) * mask

    ids = torch.zeros(1, 9, dtype=torch.int64)
    two = export(
        TwoInputs().eval(),
        (ids, torch.ones(1)),
        dynamic_shapes=({1: Dim("tokens", max=MOST_TOKENS)}, None),
    )
    with pytest.raises(ValueError, match=r"mask is torch.float32 of shape \[1\]; token ids, and"):
        make_incremental(two)
    with pytest.raises(ValueError, match="static batch and a dynamic T"):
        make_incremental(export(Model().eval(), (ids,)))
    with pytest.raises(ValueError, match="cache_dtype"):
        make_incremental(exported(Model()), cache_dtype=torch.int32)


def test_the_text_that_was_exported_with_may_have_three_tokens_not_two() -> None:
    with pytest.raises(NotCausalError, match="has 2 tokens; it has to have 3"):
        make_incremental(exported(made(Model), 2))
    program = to_edge(make_incremental(exported(made(Model), 3))).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    for ids in texts(12):
        given = torch.tensor([ids])
        with torch.no_grad():
            expected = made(Model)(given)
        torch.testing.assert_close(
            method.execute([given])[0], expected, rtol=TOLERANCE, atol=TOLERANCE
        )
