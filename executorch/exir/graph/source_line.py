"""Where in the user's model a node comes from, for messages."""

from __future__ import annotations

import os
import re
from functools import lru_cache

import torch
from torch.fx import Node

_PACKAGES = os.path.dirname(os.path.dirname(torch.__file__))
# What a model calls, and what is no part of it.
_LIBRARIES = (
    *(os.path.join(_PACKAGES, name, "") for name in ("torch", "torchao")),
    "<eval_with_key>",  # code that PyTorch generates
)

_Frame = tuple[str, int, str, str]
_FRAME = re.compile(r'File "(?P<file>.*?)", line (?P<line>\d+), in (?P<name>.*)\n?(?P<code>.*)')


def frames(node: Node) -> tuple[_Frame, ...]:
    """(file, line, function, code) of the node's stack trace, innermost last; maybe empty."""
    return _parse(node.meta.get("stack_trace") or "")


@lru_cache(maxsize=4096)  # nodes that stem from one call have one trace
def _parse(trace: str) -> tuple[_Frame, ...]:
    return tuple(
        (m["file"], int(m["line"]), m["name"].strip(), m["code"].strip())
        for m in _FRAME.finditer(trace)
    )


def user_frame(node: Node) -> _Frame | None:
    """The innermost frame outside PyTorch, or inside if all are."""
    found = frames(node)
    own = [f for f in found if not f[0].startswith(_LIBRARIES)] or found
    return own[-1] if own else None


def source_line(node: Node) -> str:
    """`file:line: code` of the node's user frame, or "no source line is known"."""
    frame = user_frame(node)
    if frame is None:
        return "no source line is known"
    file, line, _, code = frame
    return f"{file}:{line}: {code}" if code else f"{file}:{line}"
