"""An `LlmConfig` from a YAML file and from settings as text: `model.use_kv_cache=True`."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from executorch.extension.llm.export.config.llm_config import LlmConfig


def load_config(file: str | Path | None, overrides: Sequence[str] = ()) -> LlmConfig:
    """The file's settings (none: the defaults), then `overrides`, each "group.name=value" with a
    value as in YAML. A leading "+" or "++", as Hydra has them, changes nothing.

    ValueError for a setting that does not exist or a value it cannot have, with its name.
    """
    settings: dict[str, Any] = {}
    if file is not None:
        with open(file, encoding="utf-8") as text:
            content = yaml.safe_load(text) or {}
        if not isinstance(content, dict):
            raise ValueError(f"{file}: groups of settings were expected, not {content!r}")
        settings.update(_flat(content))
    for override in overrides:
        name, equals, value = override.lstrip("+").partition("=")
        if not equals:
            raise ValueError(
                f"{override!r} is no setting; expected, for example, model.use_kv_cache=True"
            )
        settings[name] = _value_of(value)
    return config_from(settings)


def _value_of(text: str) -> Any:
    """Text that YAML takes for something else, such as "8,0" or JSON, stays text where wanted."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return _Text(text, value) if isinstance(value, (dict, int, float)) else value


class _Text:
    """A value together with how it was written."""

    def __init__(self, text: str, value: Any) -> None:
        self.text, self.value = text.strip("'"), value


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if name == "defaults" and not prefix:  # Hydra's
            continue
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + str(name)] = value
    return flat


def config_from(settings: Mapping[str, Any]) -> LlmConfig:
    """From settings by whole name: {"model.use_kv_cache": True}."""
    tree: dict[str, Any] = {}
    for name, value in settings.items():
        *groups, last = name.split(".")
        at = tree
        for group in groups:
            at = at.setdefault(group, {})
            if not isinstance(at, dict):
                raise ValueError(f"{name}: {group!r} is a value, not a group of settings")
        at[last] = value
    config: LlmConfig = _build(LlmConfig, tree, "")
    return config


def _build(cls: Any, given: Mapping[str, Any], path: str) -> Any:
    kinds = typing.get_type_hints(cls)
    unknown = [name for name in given if name not in kinds]
    if unknown:
        near = difflib.get_close_matches(unknown[0], list(kinds), 1)
        hint = f"; did you mean {path}{near[0]}?" if near else f"; there are {', '.join(kinds)}"
        raise ValueError(f"there is no setting {path}{unknown[0]}{hint}")
    missing = [
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
        and f.name not in given
    ]
    if missing:
        raise ValueError(f"{path}{missing[0]} is missing")
    return cls(**{n: _converted(kinds[n], v, f"{path}{n}") for n, v in given.items()})


def _converted(kind: Any, value: Any, name: str) -> Any:
    if isinstance(value, _Text):
        text, value = value.text, value.value
    else:
        text = value if isinstance(value, str) else None
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        if value is None:
            return None
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    if typing.get_origin(kind) is list:
        items = value if isinstance(value, (list, tuple)) else [value]
        (item,) = typing.get_args(kind)
        return [_converted(item, v, name) for v in items]
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} is a group of settings, not {value!r}")
        return _build(kind, value, f"{name}.")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind, text if text is not None else value, name)
    if kind is str and (text is not None or not isinstance(value, (dict, list))):
        return text if text is not None else str(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{name} is {value!r}; expected {kind.__name__}")
    return value


def _member(kind: type[Enum], value: Any, name: str) -> Enum:
    for member in kind:
        if value in (member, member.value, member.name):
            return member
    raise ValueError(f"{name} is {value!r}; expected one of {', '.join(m.value for m in kind)}")
