"""Dataclasses, such as those of `exir/schema.py`, as JSON, for tools that print or edit programs.

Bytes are lists of numbers, enumerations are numbers. Beside a field `val` whose type is one of
several dataclasses stands `val_type`, the class's name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from executorch.exir.schema import bytes_of

_NoneType = type(None)


class _DataclassEncoder(json.JSONEncoder):
    """`json.dumps(program, cls=_DataclassEncoder)`. Numbers that JSON lacks are text: "inf"."""

    def default(self, o: Any) -> Any:
        if not is_dataclass(o):
            return list(bytes_of(o))
        hints = get_type_hints(type(o))
        found: dict[str, Any] = {}
        for field in fields(o):
            value = getattr(o, field.name)
            finite = not isinstance(value, float) or math.isfinite(value)
            found[field.name] = value if finite else str(value)
            if len(_members(hints[field.name])) > 1:
                found[f"{field.name}_type"] = type(value).__name__
        return found


def _json_to_dataclass(json_dict: Any, cls: Any = None) -> Any:
    """The object of class `cls` that was encoded; anything else than a dataclass as it is.

    TypeError for a field that is missing and may not be None. Enumerations may be names, too.
    """
    if not isinstance(cls, type) or not is_dataclass(cls) or is_dataclass(json_dict):
        return json_dict
    hints = get_type_hints(cls)
    found = {}
    for field in fields(cls):
        name, hint = field.name, hints[field.name]
        if name not in json_dict and _NoneType not in get_args(hint):
            raise TypeError(f"{cls.__name__}: expected a field {name!r}, found {sorted(json_dict)}")
        found[name] = _decoded(json_dict.get(name), hint, json_dict.get(f"{name}_type"))
    return cls(**found)


def _members(hint: Any) -> list[Any]:
    """The dataclasses that a type is one of; none for other types."""
    return [member for member in get_args(hint) if is_dataclass(member)]


def _decoded(value: Any, hint: Any, chosen: str | None = None) -> Any:
    if value is None:
        return None
    if chosen is not None:
        hint = next((m for m in _members(hint) if m.__name__ == chosen), None)
        if hint is None:
            raise TypeError(f"no type {chosen!r} is expected there")
    elif _NoneType in get_args(hint):
        (hint,) = (member for member in get_args(hint) if member is not _NoneType)
    if is_dataclass(hint):
        return _json_to_dataclass(value, hint)
    if get_origin(hint) in (list, Sequence):
        return [_decoded(item, get_args(hint)[0]) for item in value]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value] if isinstance(value, str) else hint(value)
    if hint is Any:
        return bytes(value)
    return hint(value)
