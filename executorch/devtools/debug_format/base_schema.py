"""A graph for tools that draw one: operators and values, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Node:
    name: str
    inputs: list[Node] | None = None
    output_shapes: list[list[int]] | None = None
    metadata: dict[str, Any] | None = None
    named_args: list[str] | None = None  # of `inputs`, then of the other arguments


@dataclass
class OperatorNode(Node):
    op: str | None = None


@dataclass
class ValueNode(Node):
    dtype: str = ""
    val: Any | None = None


@dataclass
class OperatorGraph:
    graph_name: str
    elements: list[Node | OperatorGraph]
    metadata: dict[str, Any] | None = None
