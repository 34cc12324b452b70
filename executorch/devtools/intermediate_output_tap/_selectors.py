"""Which nodes are tapped: functions from a node to whether it is. Any such function will do."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from torch.fx import Node

NodeSelector = Callable[[Node], bool]


def select_all_call_function(exclude: tuple[str, ...] = ("getitem",)) -> NodeSelector:
    """Every call of a function whose name is not among `exclude`."""

    def is_selected(node: Node) -> bool:
        names = {str(node.target), getattr(node.target, "__name__", "")}
        return node.op == "call_function" and names.isdisjoint(exclude)

    return is_selected


def select_by_op_type(*op_targets: str) -> NodeSelector:
    """Calls of operators whose names end so: "aten.linear.default", "linear.default"."""
    _require_some("select_by_op_type", op_targets)
    return lambda node: node.op == "call_function" and str(node.target).endswith(op_targets)


def select_by_module_path(*patterns: str, output_only: bool = True) -> NodeSelector:
    """What is computed in modules whose paths match one of the patterns, as of a shell
    ("layers.*.attention"); output_only: of that the values that leave the module."""
    _require_some("select_by_module_path", patterns)
    return _select_in_modules(
        lambda path, _: any(fnmatchcase(path, each) for each in patterns), output_only
    )


def select_by_module_class(*class_names: str, output_only: bool = True) -> NodeSelector:
    """As `select_by_module_path`, by the names of classes, without their packages."""
    _require_some("select_by_module_class", class_names)
    return _select_in_modules(lambda _, name: name in class_names, output_only)


def select_any(*selectors: NodeSelector) -> NodeSelector:
    return lambda node: any(each(node) for each in selectors)


def select_all(*selectors: NodeSelector) -> NodeSelector:
    return lambda node: all(each(node) for each in selectors)


def select_not(selector: NodeSelector) -> NodeSelector:
    return lambda node: not selector(node)


def modules_of(node: Node) -> dict[str, tuple[str, str]]:
    """The modules that a node is in, the innermost last: key -> path, name of the class."""
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or {}
    return {key: (path, _bare(kind)) for key, (path, kind) in stack.items()}


def _bare(kind: type | str) -> str:
    return kind.rsplit(".", 1)[-1] if isinstance(kind, str) else kind.__name__


def _select_in_modules(matches: Callable[[str, str], bool], output_only: bool) -> NodeSelector:
    def is_selected(node: Node) -> bool:
        inside = {key for key, module in modules_of(node).items() if matches(*module)}
        if not output_only:
            return bool(inside)
        return bool(inside) and all(inside.isdisjoint(modules_of(user)) for user in node.users)

    return is_selected


def _require_some(function: str, given: tuple[str, ...]) -> None:
    if not given:
        raise ValueError(f"{function}: expected at least one name, found none")
