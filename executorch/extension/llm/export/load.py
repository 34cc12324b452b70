"""Checkpoints into models, one weight at a time: GGUF files, safetensors files, folders of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from executorch.extension.llm.export.gguf import iter_gguf
from executorch.extension.llm.export.quant.convert import Convert, maybe_cast, to_default

Pair = tuple[str, Tensor]
# The name of a parameter for a checkpoint's name, or None to leave the tensor out.
KeyMap = Callable[[str], str | None]
# Parameter -> another one that has its value where the checkpoint does not, and whether as a copy.
TieMap = dict[str, tuple[str, bool]]
# What reads a checkpoint of a form of your own.
RawIter = Callable[[str], Iterable[Pair]]

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


def assert_all_materialized(model: nn.Module) -> None:
    """Raise RuntimeError if some parameter got no value, so that it is still on the device meta."""
    for fqn, parameter in model.named_parameters():
        if parameter.device.type == "meta":
            raise RuntimeError(f"Weight '{fqn}' not found in checkpoint")


def assign_one(model: nn.Module, fqn: str, value: Tensor) -> None:
    """Replace a parameter by one with `value` and without gradient, or a buffer by `value`."""
    parent, _, name = fqn.rpartition(".")
    module = model.get_submodule(parent)
    if isinstance(getattr(module, name, None), nn.Parameter):
        setattr(module, name, nn.Parameter(value, requires_grad=False))
    else:
        module.register_buffer(name, value)


def assign_state_dict(
    model: nn.Module, state_dict: dict[str, Tensor], convert: Convert = to_default
) -> None:
    """Replace the model's parameters and buffers by the converted values, without gradients.
    RuntimeError if some parameter got no value."""
    for fqn, value in state_dict.items():
        assign_one(model, fqn, convert(fqn, value))
    assert_all_materialized(model)
    model.requires_grad_(False)


def iter_checkpoint(
    path: str,
    *,
    key_map: KeyMap | None = None,
    convert: Convert = to_default,
    tie_map: TieMap | None = None,
    dtype: torch.dtype | None = None,
    raw_iter: RawIter | None = None,
) -> Iterator[Pair]:
    """Yield (name, value) for each tensor of a checkpoint. Names are mapped by `key_map`. Values
    are converted, then cast to `dtype` unless that would dequantize them. Parameters that `tie_map`
    ties to others come last. ValueError for a path that is no checkpoint."""
    seen: set[str] = set()
    owed: dict[str, tuple[Tensor, bool]] = {}
    for name, raw in (raw_iter or _reader(path))(path):
        fqn = key_map(name) if key_map is not None else name
        if fqn is None:
            continue
        value = maybe_cast(convert(fqn, raw), dtype)
        seen.add(fqn)
        if tie_map is not None and fqn in tie_map:
            other, copied = tie_map[fqn]
            owed[other] = (value, copied)
        yield fqn, value
    for fqn, (value, copied) in owed.items():
        if fqn not in seen:
            yield fqn, value.clone() if copied else value


def load_checkpoint(path: str, model: nn.Module, **options: Any) -> None:
    """Replace the model's values by those of `iter_checkpoint(path, **options)`. RuntimeError if
    some parameter got no value."""
    for fqn, value in iter_checkpoint(path, **options):
        assign_one(model, fqn, value)
    assert_all_materialized(model)


def _reader(path: str) -> RawIter:
    if path.endswith(".gguf"):
        return iter_gguf
    if path.endswith(".safetensors") or Path(path).is_dir():
        return _iter_safetensors
    raise ValueError(
        f"{path!r} is no checkpoint: a .gguf file, a .safetensors file or a folder of such is "
        "expected"
    )


def _files(path: Path) -> list[Path]:
    """The safetensors files of a checkpoint. An index may only name files of its own folder."""
    if not path.is_dir():
        return [path]
    if (path / _INDEX).exists():
        names = _named_files(path / _INDEX)
        outside = [n for n in names if Path(n).name != n]
        if outside:
            raise ValueError(f"{path / _INDEX} names files of other folders: {outside}")
        return [path / name for name in names]
    if (path / _SINGLE).exists():
        return [path / _SINGLE]
    raise FileNotFoundError(f"there is no {_INDEX} and no {_SINGLE} in {path}")


def _named_files(index: Path) -> list[str]:
    try:
        names = set(json.loads(index.read_text())["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"{index}: no JSON object with a weight_map: {e}") from e
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{index}: weight_map names something else than files")
    return sorted(names)


def _iter_safetensors(path: str) -> Iterator[Pair]:
    """Plain tensors, or torchao's quantized ones, whose parts may lie in several files."""
    from safetensors import safe_open

    with ExitStack() as stack:
        files = [
            stack.enter_context(safe_open(file, framework="pt", device="cpu"))
            for file in _files(Path(path))
        ]
        home = {key: file for file in files for key in file.keys()}  # noqa: SIM118
        about: dict[str, str] = {}
        names: dict[str, None] = {}
        for file in files:
            found = file.metadata() or {}
            about |= found
            names |= dict.fromkeys(json.loads(found.get("tensor_names", "[]")))
        if not names:
            for key, file in home.items():
                yield key, file.get_tensor(key)
        for name in names:
            if name not in about:
                raise ValueError(f"{path} says nothing of the tensor {name!r} that it names")
            yield name, _whole(name, about[name], lambda key: home[key].get_tensor(key))


def _whole(name: str, about: str, read: Callable[[str], Tensor]) -> Tensor:
    from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict

    described = json.loads(about)
    if described.get("_type") in ("Tensor", "torch.Tensor"):
        return read(name)
    module, _, weight = name.rpartition(".")
    prefix = f"{module}._{weight}_" if module else f"_{weight}_"
    parts = {prefix + part: read(prefix + part) for part in described["_tensor_data_names"]}
    metadata = {"tensor_names": json.dumps([name]), name: about}
    whole, _ = unflatten_tensor_state_dict(parts, metadata)
    return whole[name]  # type: ignore[no-any-return]
