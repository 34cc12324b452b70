"""Schemas, logs and the interpreter's limits."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from executorch.exir.torch_internals import DisableTorchDispatch, all_schemas


@contextmanager
def no_dispatch() -> Iterator[None]:
    """Without dispatch modes."""
    guard = DisableTorchDispatch()
    try:
        yield
    finally:
        del guard


def get_schema_for_operators(ops: Sequence[str]) -> dict[str, str]:
    """For names such as `torch.ops.aten.cat.default`: {"aten::cat.default": schema}, to read."""
    names = [_qualified(op) for op in ops]
    schemas = {f"{s.name}.{s.overload_name or 'default'}": str(s) for s in all_schemas()}
    return {name: schemas.get(name, "<No Schema Found>") for name in names}


def _qualified(op: str) -> str:
    namespace, _, rest = op.removeprefix("torch.ops.").partition(".")
    return f"{namespace}::{rest}" if op.startswith("torch.ops.") else op


def extract_out_arguments(
    schema: torch.FunctionSchema, keyword_args: Mapping[str, Any]
) -> tuple[str, Any] | list[tuple[str, Any]]:
    """(name, value) of the out argument given in `keyword_args`; a list of them for several."""
    found = [
        (a.name, keyword_args[a.name])
        for a in schema.arguments
        if a.is_out and a.name in keyword_args
    ]
    if not found and "out" in keyword_args:  # lists of tensors are not marked
        found = [("out", keyword_args["out"])]
    return found[0] if len(found) == 1 else found


def format_schema_name(schema: torch.FunctionSchema) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


@contextmanager
def override_logger(
    newLevel: int = logging.DEBUG,  # noqa: N803 (as callers spell it)
    fmtstr: str = "%(message)s",
    filename: str | None = None,
) -> Iterator[None]:
    """The root logger at another level and format, and into a file as well if one is named."""
    root = logging.root
    level, formatters = root.level, [(h, h.formatter) for h in root.handlers]
    root.setLevel(newLevel)
    for handler, _ in formatters if fmtstr else ():
        handler.formatter = logging.Formatter(fmtstr)
    file = logging.FileHandler(filename, mode="w") if filename else None
    if file is not None:
        root.addHandler(file)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler, formatter in formatters:
            handler.formatter = formatter
        if file is not None:
            root.removeHandler(file)
            file.close()


@contextmanager
def setting_python_recursive_limit(limit: int = 10000) -> Iterator[None]:
    """A higher recursion limit, for pickling deep structures; never a lower one."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, limit))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
