"""Sample inputs of a module that was given without any."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from executorch.exir.error import first_line
from executorch.exir.side_effects import unchanged_buffers
from executorch.exir.torch_internals import tree_leaves

# How models and their configurations call the longest text they take.
_LENGTHS = (
    "block_size", "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len",
    "max_seq_length", "max_sequence_length", "context_length", "context_size", "seq_len",
)  # fmt: skip
# Where nothing says how long a text may be.
_LONGEST = 1024
# Not one that a mask or a table of the model may happen to have.
_EXAMPLE_LENGTH = 11


@dataclass
class Inferred:
    """`longest` and `vocabulary` are of token ids; None: other inputs, or not known."""

    inputs: tuple[Tensor, ...]
    longest: int | None = None
    vocabulary: int | None = None


class FirstOutput(nn.Module):
    """A model's first floating-point result alone: logits, without losses and states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        return first_tensor(self.model(tokens))


def first_tensor(result: Any) -> Tensor:
    found = getattr(result, "logits", None)
    if isinstance(found, Tensor):
        return found
    for leaf in tree_leaves(result):
        if isinstance(leaf, Tensor) and leaf.is_floating_point():
            return leaf
    raise ValueError(f"the model returns no floating-point tensor, but {type(result).__name__}")


def takes_tokens(inputs: tuple[Any, ...], shapes: Any) -> bool:
    """Whether the first input is token ids [batch, length] or [length] whose length is dynamic, and
    each further one is as long and may say something of each token, such as its position."""
    if not inputs or not shapes or len(shapes) != len(inputs):
        return False
    given = list(shapes.values()) if isinstance(shapes, dict) else list(shapes)
    lengths = [_length_of(x, dims) for x, dims in zip(inputs, given, strict=True)]
    is_ids = isinstance(inputs[0], Tensor) and inputs[0].dtype is not torch.bool
    # A dim that has no name, such as Dim.AUTO, is compared where the model is exported.
    return is_ids and None not in lengths and all(one == lengths[0] for one in lengths)


def _length_of(x: Any, dims: Any) -> Any:
    """What is said of the last dim of integers or bools of rank 1 or 2, if it is dynamic."""
    if not isinstance(x, Tensor) or x.dim() not in (1, 2):
        return None
    if x.dtype not in (torch.int32, torch.int64, torch.bool):
        return None
    dim = None
    if isinstance(dims, dict):
        dim = dims.get(x.dim() - 1)
    elif isinstance(dims, (list, tuple)) and len(dims) == x.dim():
        dim = dims[-1]
    if isinstance(dim, int) or dim == torch.export.Dim.STATIC:
        return None
    return getattr(dim, "__name__", dim)  # dims of one name are one


def example_tokens(longest: int, vocabulary: int) -> Tensor:
    """int64 [1, a length that is allowed], the same in every export."""
    generator = torch.Generator().manual_seed(0)
    # torch.export takes a length of 1 for a constant; an incremental program needs 3.
    shorter = max(min(3, longest), longest // 2)
    length = _EXAMPLE_LENGTH if longest > _EXAMPLE_LENGTH else shorter
    return torch.randint(0, max(vocabulary, 1), (1, length), generator=generator)


def infer_inputs(name: str, model: nn.Module, max_length: int | None) -> Inferred:
    """Inputs that the model runs on, by what its first layers take. ValueError if none is found."""
    parameters = inspect.signature(model.forward).parameters.values()
    required = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    hint = "name a function that returns (model, inputs), or (model, inputs, dynamic_shapes)"
    if len(required) != 1:
        raise ValueError(
            f"{name}: its forward takes {len(required)} arguments ({', '.join(required)}), and "
            f"sample inputs are inferred for one only; {hint}"
        )
    tried = "it has no embedding, linear or convolutional layer"
    for candidate in _candidates(model, max_length):
        try:
            # What the model keeps must still be what it began with when it is exported.
            with torch.no_grad(), unchanged_buffers(model):
                model(*candidate.inputs)
        except Exception as error:  # whatever a model does with inputs that are not its own
            x = candidate.inputs[0]
            kind = str(x.dtype).removeprefix("torch.")
            tried = f"on {kind} {list(x.shape)} it fails: {first_line(error):.120}"
            continue
        if max_length is not None and candidate.longest is None:
            raise ValueError(f"{name}: --max-length is for models that take token ids")
        if candidate.longest is not None and max_length is None and _said_length(model) is None:
            return replace(candidate, longest=_longest_computed(model, candidate.inputs[0]))
        return candidate
    raise ValueError(f"{name}: no sample inputs could be inferred ({tried}); {hint}")


def _candidates(model: nn.Module, max_length: int | None) -> Iterator[Inferred]:
    for layer in model.modules():
        if isinstance(layer, nn.Embedding):
            longest = _longest(model, max_length)
            yield Inferred(
                (example_tokens(longest, layer.num_embeddings),), longest, layer.num_embeddings
            )
            break
    generator = torch.Generator().manual_seed(0)
    for layer in model.modules():
        shapes: list[tuple[int, ...]] = []
        if isinstance(layer, nn.Linear):
            shapes = [(1, layer.in_features), (1, _EXAMPLE_LENGTH, layer.in_features)]
        elif isinstance(layer, nn.Conv2d):
            shapes = [(1, layer.in_channels, n, n) for n in (224, 64, 32, 28)]
        elif isinstance(layer, nn.Conv1d):
            shapes = [(1, layer.in_channels, 128)]
        for shape in shapes:
            yield Inferred((torch.randn(shape, generator=generator),))
        if shapes:
            return


def _longest(model: nn.Module, max_length: int | None) -> int:
    """The longest text that the model says it takes; no more than `max_length`."""
    said = _said_length(model)
    if said is None:
        return max_length or _LONGEST
    if max_length is not None and max_length > said:
        raise ValueError(f"--max-length {max_length}: the model takes at most {said} tokens")
    return max_length or said


def _said_length(model: nn.Module) -> int | None:
    said = None
    for layer in model.modules():
        for holder in (getattr(layer, "config", None), getattr(layer, "args", None), layer):
            for name in _LENGTHS:
                value = getattr(holder, name, None)
                if type(value) is int and value > 0:
                    said = value if said is None else min(said, value)
    return said


def _longest_computed(model: nn.Module, example: Tensor) -> int:
    """The longest text that a model computes which does not say how long one may be: its tables
    end somewhere."""

    def is_computed(length: int) -> bool:
        try:
            with torch.no_grad(), unchanged_buffers(model):
                model(example[:, :1].expand(-1, length))
        except Exception:  # whatever a model does with a text that is too long
            return False
        return True

    computed, too_long = example.shape[1], _LONGEST + 1
    at = _LONGEST  # many take any length
    while too_long - computed > 1:
        if is_computed(at):
            computed = at
        else:
            too_long = at
        at = (computed + too_long) // 2
    return computed
