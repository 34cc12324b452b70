"""What the export command's MODEL names: a function, a module, or a model of `transformers`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from executorch.devtools.parity.example import object_named
from executorch.exir.torch_internals import original_module
from executorch.export.infer_inputs import FirstOutput, infer_inputs, takes_tokens


@dataclass
class Source:
    """A model and what it is exported with.

    inputs            tuples of arguments; the first is exported with
    constant_methods  what the program says of itself
    takes_tokens      its one input is token ids [batch, length], the length dynamic
    """

    model: nn.Module | ExportedProgram
    inputs: list[tuple[Any, ...]]
    shapes: Any = None
    constant_methods: dict[str, Any] = field(default_factory=dict)
    takes_tokens: bool = False


class LastPosition(FirstOutput):
    """The last position of what a model gives for each, its dim 1 then of extent 1."""

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens)[:, -1:]


def find_source(
    spec: str,
    *,
    random_weights: bool = False,
    max_length: int | None = None,
    last_only: bool = False,
    dtype: str | None = None,
) -> Source:
    """The model behind `file.py:name`, `package.module:name`, `package.module.name`, a folder with
    a config.json, or the id of a model in the local cache of `transformers`.

    A name stands for a function without parameters that returns a model, (model, inputs) or
    (model, inputs, dynamic_shapes); for a module; or for a class of modules that needs no
    arguments. Inputs that are not given are inferred, and token ids get a dynamic length of at most
    `max_length`; with `last_only` a model of such returns its last position alone. Models of
    `transformers` that are loaded here have weights of type `dtype`: float32 if it is None, those
    of the folder if it is "auto". Raises ValueError that says what is missing.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"--max-length: expected at least 1, found {max_length}")
    place = _importable(spec)
    if place is None:
        from executorch.export.transformers_models import transformers_source

        return transformers_source(spec, random_weights, max_length, last_only, dtype)
    for option, value in (("--random-weights", random_weights), ("--dtype", dtype)):
        if value:
            raise ValueError(f"{option} is for models of transformers; {spec} makes its own")
    source = _named_source(place, max_length)
    if last_only:
        if not source.takes_tokens or not isinstance(source.model, nn.Module):
            raise ValueError("--last-only is for modules that take token ids of a dynamic length")
        source.model = LastPosition(source.model)
    return source


def _importable(spec: str) -> str | None:
    """`spec` in the form `place:name`; None if it names no Python object."""
    place, colon, name = spec.rpartition(":")
    if colon:
        return spec
    if spec.endswith(".py"):
        raise ValueError(f"{spec}: expected {spec}:NAME, the name of a function or module in it")
    if Path(spec).exists() or "/" in spec:
        return None
    place, dot, name = spec.rpartition(".")
    try:
        found = dot and importlib.util.find_spec(place) is not None
    except (ImportError, ValueError):
        found = False
    return f"{place}:{name}" if found else None


def _named_source(spec: str, max_length: int | None) -> Source:
    found = object_named(spec)
    if inspect.isclass(found) and issubclass(found, nn.Module) or inspect.isroutine(found):
        try:
            found = found()
        except TypeError as error:
            raise ValueError(
                f"{spec} cannot be called without arguments ({error}); name a function that "
                "returns the model, or (model, inputs)"
            ) from error
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            *_, last = traceback.extract_tb(error.__traceback__)
            raise ValueError(
                f"{spec} raised {type(error).__name__} at {last.filename}:{last.lineno}: {error}"
            ) from error
    if isinstance(found, tuple):
        return _given(spec, found, max_length)
    if not isinstance(found, nn.Module):
        raise ValueError(
            f"{spec}: expected a module, or (model, inputs[, dynamic_shapes]), found "
            f"{type(found).__name__}"
        )
    model = original_module(found).eval()
    if _is_of_transformers(model):
        from executorch.export.transformers_models import source_of

        return source_of(model, max_length)
    inferred = infer_inputs(spec, model, max_length)
    if inferred.longest is None:
        return Source(model, [inferred.inputs])
    return tokens_source(FirstOutput(model), inferred.inputs, inferred.longest, inferred.vocabulary)


def _is_of_transformers(model: nn.Module) -> bool:
    """Whether it is a model of that package which continues a text."""
    package = sys.modules.get("transformers")
    if package is None or not isinstance(model, package.PreTrainedModel):
        return False
    return model.can_generate() and not model.config.is_encoder_decoder


def _given(spec: str, found: tuple[Any, ...], max_length: int | None) -> Source:
    if len(found) not in (2, 3) or not isinstance(found[0], (nn.Module, ExportedProgram)):
        raise ValueError(f"{spec}: expected (model, inputs[, dynamic_shapes]), found {found!r:.80}")
    if max_length is not None:
        raise ValueError("--max-length is for inputs that are inferred; these are given")
    model, inputs, shapes = (*found, None)[:3]
    model = original_module(model)
    if not isinstance(inputs, (tuple, list)):
        inputs = (inputs,)
    listed = [inputs] if isinstance(inputs, tuple) else list(inputs)
    return Source(model, listed, shapes, {}, takes_tokens(listed[0], shapes))


def tokens_source(
    model: nn.Module, inputs: tuple[Any, ...], longest: int, vocabulary: int | None
) -> Source:
    """A language model of token ids [1, length], with what a runner asks a program."""
    source = Source(model, [inputs], takes_tokens=longest > 1)
    set_longest(source, longest)
    if vocabulary is not None:
        source.constant_methods["get_vocab_size"] = vocabulary
    return source


def set_longest(source: Source, longest: int) -> None:
    """Have a language model of token ids take at most `longest`."""
    lengths = ("get_max_seq_len", "get_max_context_len")
    source.constant_methods.update(dict.fromkeys(lengths, longest))
    source.shapes = ({1: Dim("tokens", max=longest)},) if longest > 1 else None
