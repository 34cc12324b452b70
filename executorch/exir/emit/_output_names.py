"""What the user's model calls its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


def output_names(spec: Any) -> list[str]:
    """For each leaf of results the keys that lead to it, "logits" or "cache.0"; "" where only
    positions do. Keys are those of dictionaries, data classes and named tuples.

    spec   PyTorch's tree of the results; None for a single result
    """
    return [""] if spec is None else list(_names(spec, "", False))


def _names(spec: Any, path: str, has_key: bool) -> Iterator[str]:
    if spec.is_leaf():
        yield path if has_key else ""
        return
    children = spec.children()
    keys = _keys(spec, len(children))
    for key, child in zip(keys or range(len(children)), children, strict=True):
        yield from _names(child, f"{path}.{key}" if path else str(key), has_key or bool(keys))


def _keys(spec: Any, count: int) -> list[str]:
    """The keys of a node's children; none for lists, tuples and containers of the user's own."""
    context = spec.context
    if isinstance(context, type) and issubclass(context, tuple):  # a named tuple
        return list(getattr(context, "_fields", ()))
    is_dict = isinstance(spec.type, type) and issubclass(spec.type, dict)
    if not is_dict and not dataclasses.is_dataclass(spec.type):
        return []
    # A dictionary's context is the list of keys. Others have it in one of several entries.
    for keys in (context, *(context if isinstance(context, (list, tuple)) else ())):
        is_list = isinstance(keys, (list, tuple)) and len(keys) == count
        if is_list and all(isinstance(key, (str, int)) for key in keys):
            return [str(key) for key in keys]
    return []
