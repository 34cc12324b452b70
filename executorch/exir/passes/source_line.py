"""Where in the user's model a node comes from, for messages."""

from __future__ import annotations

import re

from torch.fx import Node

_FRAME = re.compile(r'File "(?P<file>.*?)", line (?P<line>\d+), in (?P<name>.*)\n?(?P<code>.*)')


def frames(node: Node) -> list[tuple[str, int, str, str]]:
    """(file, line, function, code) of the node's stack trace, innermost last; maybe empty."""
    trace = node.meta.get("stack_trace") or ""
    return [
        (m["file"], int(m["line"]), m["name"].strip(), m["code"].strip())
        for m in _FRAME.finditer(trace)
    ]


def source_line(node: Node) -> str:
    """`file:line: code` of the innermost frame outside PyTorch, or "no source line is known"."""
    found = frames(node)
    own = [f for f in found if "/site-packages/torch/" not in f[0]] or found
    if not own:
        return "no source line is known"
    file, line, _, code = own[-1]
    return f"{file}:{line}: {code}" if code else f"{file}:{line}"
