"""The structure of arguments and results as JSON text, version 1 of PyTorch's tree format."""

from __future__ import annotations

import json
from typing import Any

_VERSION = 1


def container_text(spec: Any) -> str:
    """Containers without a registered name (named tuples such as `torch.topk`'s) read as tuples;
    the empty string for no spec."""
    if spec is None:
        return ""
    from executorch.exir.torch_internals import treespec_dumps

    try:
        return treespec_dumps(spec)
    except NotImplementedError:
        return json.dumps([_VERSION, _node(spec)])


def _node(spec: Any) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    kind, context = "builtins.tuple", "null"
    if spec.type is list:
        kind = "builtins.list"
    elif isinstance(spec.type, type) and issubclass(spec.type, dict):
        kind, context = "builtins.dict", json.dumps(list(spec.context))
    return {
        "type": kind,
        "context": context,
        "children_spec": [_node(child) for child in spec.children()],
    }
