"""Calls of `exir.memory` in the text of programs, which knows operators only.

alloc   memory.alloc of one "alloc_arg", or for a list of several "alloc_list": texts such as
        "(2, 3);7", a shape and the number of a type in torch.export's schema. Its results are
        the list's parts, by the names of the nodes that read them
view    executorch.exir.memory.view of a tensor and a shape
"""

from __future__ import annotations

import operator
import re
from typing import Any

import torch
from torch.fx import Graph, Node

from executorch.exir import memory
from executorch.exir.torch_internals import serialized_dtypes

_ALLOC, _VIEW = "memory.alloc", "executorch.exir.memory.view"
_NAMESPACE = "executorch_memory"
_PATH = f"torch.ops.{_NAMESPACE}."
_library = torch.library.Library(_NAMESPACE, "DEF")
_library.define("alloc(str alloc_arg) -> Tensor")
_library.define("view(Tensor base, SymInt[] size) -> Tensor")
_library.define("alloc_list(str[] alloc_list) -> Tensor[]")
# What is written for a list, whose readers may take it whole.
_library.define("alloc_whole(str[] alloc_list) -> Tensor")
_library.define("part(Tensor alloc, int index) -> Tensor")
_operators = getattr(torch.ops, _NAMESPACE)


def calls_to_operators(graph: Graph) -> None:
    """Put operators that stand for `exir.memory` into a graph that is going to be text."""
    for node in graph.find_nodes(op="call_function", target=memory.view):
        node.target = _operators.view.default
    for node in graph.find_nodes(op="call_function", target=memory.alloc):
        (wanted,) = node.args
        if isinstance(wanted, list):
            _split(node, node.meta["val"])
            node.target = _operators.alloc_whole.default
            node.args = ([_text(*each) for each in wanted],)
        else:
            node.target, node.args = _operators.alloc.default, (_text(*wanted),)


def _split(alloc: Node, values: list[torch.Tensor]) -> None:
    """Give each part of a list one reader, right behind it."""
    readers = {user.args[1]: user for user in alloc.users if user.target is operator.getitem}
    for i, value in reversed(list(enumerate(values))):
        with alloc.graph.inserting_after(alloc):
            part = alloc.graph.call_function(_operators.part.default, (alloc, i))
        part.meta["val"] = value
        if i in readers:
            readers[i].replace_all_uses_with(part)
            alloc.graph.erase_node(readers[i])
            part.name = readers[i].name
        else:
            part.name = f"{alloc.name}_unused_{i}"
    alloc.meta["val"] = values[0]


def operators_to_calls(graph: Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=_operators.view.default):
        node.target = memory.view
    for node in graph.find_nodes(op="call_function", target=_operators.alloc.default):
        node.target, node.args = memory.alloc, (_wanted(node.args[0]),)
    for node in graph.find_nodes(op="call_function", target=_operators.alloc_list.default):
        node.target, node.args = memory.alloc, ([_wanted(text) for text in node.args[0]],)


def operators_to_fields(graph: dict[str, Any]) -> None:
    """Name the calls in the fields of a graph."""
    lists = {}
    for node in graph["nodes"]:
        name = node["target"].removeprefix(_PATH)
        if name == "view.default":
            node["target"] = _VIEW
            for argument in node["inputs"]:
                argument["name"] = ""
        elif name == "alloc.default":
            node["target"] = _ALLOC
        elif name == "alloc_whole.default":
            node["target"], node["outputs"] = _ALLOC, []
            texts = node["inputs"][0]["arg"]["as_strings"]
            node["inputs"] = [{"name": "alloc_list", "arg": {"as_string": text}} for text in texts]
            lists[node["name"]] = node
        elif name == "part.default":
            lists[node["inputs"][0]["arg"]["as_tensor"]["name"]]["outputs"] += node["outputs"]
    graph["nodes"] = [n for n in graph["nodes"] if n["target"] != f"{_PATH}part.default"]


def fields_to_operators(node: dict[str, Any]) -> bool:
    """Name the operator that stands for a node's call; whether it is one of `exir.memory`."""
    if node["target"] not in (_ALLOC, _VIEW):
        return False
    inputs = node["inputs"]
    if node["target"] == _VIEW:
        node["target"] = f"{_PATH}view.default"
        inputs[0]["name"], inputs[1]["name"] = "base", "size"
    elif inputs[0]["name"] == "alloc_list":
        node["target"] = f"{_PATH}alloc_list.default"
        texts = [argument["arg"]["as_string"] for argument in inputs]
        node["inputs"] = [{"name": "alloc_list", "arg": {"as_strings": texts}}]
        node["outputs"] = [{"as_tensors": [output["as_tensor"] for output in node["outputs"]]}]
    else:
        node["target"] = f"{_PATH}alloc.default"
    return True


def _text(shape: tuple[int, ...], dtype: torch.dtype) -> str:
    return f"{tuple(shape)};{int(serialized_dtypes[dtype])}"


def _wanted(text: Any) -> memory.AllocSpec:
    shape, _, kind = str(text).partition(";")
    dtypes = {int(number): dtype for dtype, number in serialized_dtypes.items()}
    return tuple(map(int, re.findall(r"\d+", shape))), dtypes[int(kind)]
