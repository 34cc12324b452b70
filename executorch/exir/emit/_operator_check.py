"""Whether the runtime has the operators that a program calls, for the types that they are given."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir import memory
from executorch.exir.dialects.edge._ops import find_out_variant
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.operator_kind import converts_float8, overload_of
from executorch.exir.graph.source_line import source_line
from executorch.exir.graph_module import all_graph_modules

_log = logging.getLogger(__name__)

# One operator name per line, written by the build of the kernels.
_LIST = Path(__file__).parents[1] / "operators.txt"

# Kernels of other namespaces come with the application.
_OURS = frozenset({"aten", "dim_order_ops", "quantized_decomposed", "et_copy", "executorch_prim"})


def known_operators(path: Path = _LIST) -> frozenset[str] | None:
    """Names of the operators that the runtime registers; None if the kernels were not built."""
    if not path.exists():
        return None
    return frozenset(path.read_text().split())


def with_out_variants(operators: Iterable[Any]) -> frozenset[str]:
    """The names of operators and of their out variants, as programs call them."""
    names: set[str] = set()
    for op in filter(None, map(overload_of, operators)):
        names.add(op.name())
        try:
            names.add(find_out_variant(op).name())
        except RuntimeError:
            _log.debug("%s has no out variant", op)
    return frozenset(names)


def check_operators(programs: dict[str, ExportedProgram], known: frozenset[str] | None) -> None:
    """ExportError that lists every operator in our namespaces without a kernel, and where each
    comes from. Without a list of kernels, a warning."""
    if known is None:
        _log.warning("operators are not checked: %s is missing; build the kernels", _LIST)
        return
    missing: dict[str, tuple[str, Node]] = {}
    for method, program in programs.items():
        for graph_module in all_graph_modules(program.graph_module):
            for name, node in _calls(graph_module.graph.nodes):
                if name not in known:
                    missing.setdefault(name, (method, node))
    if missing:
        raise ExportError(ExportErrorType.NOT_SUPPORTED, _report(missing))


def check_float8(programs: dict[str, ExportedProgram]) -> None:
    """ExportError for the first call that converts float8."""
    for method, program in programs.items():
        for graph_module in all_graph_modules(program.graph_module):
            for name, node in _calls(graph_module.graph.nodes):
                if converts_float8(node):
                    raise ExportError(ExportErrorType.NOT_SUPPORTED, _no_float8(name, method, node))


def _no_float8(name: str, method: str, node: Node) -> str:
    operands = [n for n in node.all_input_nodes if n.target is not memory.alloc]
    values = {n.name: n.meta.get("val") for n in (*operands, node)}
    found = ", ".join(f"{k} is {v.dtype}" for k, v in values.items() if isinstance(v, Tensor))
    return (
        f"{name}, method {method}, node {node}: {found}; no kernel converts float8\n"
        f"  in your model: {source_line(node)}\n"
        "Quantize weights to integers, or convert them to float before torch.export.export."
    )


def _calls(nodes: Iterable[Node]) -> Iterable[tuple[str, Node]]:
    for node in nodes:
        op = overload_of(node.target) if node.op == "call_function" else None
        if op is not None and op.namespace in _OURS:
            yield op.name(), node


def _report(missing: dict[str, tuple[str, Node]]) -> str:
    lines = ["the runtime has no kernel for these operators:"]
    for name, (method, node) in missing.items():
        lines.append(f"  {name}, method {method}, node {node}")
        lines.append(f"    in your model: {source_line(node)}")
    lines.append(
        "Write the line with other operators, lower it to a backend that has the operator, or "
        "define an operator of your own (torch.library, with an `.out` overload) and register its "
        "kernel in the application. If the application registers a kernel under the operator's own "
        "name, put it into EdgeCompileConfig(_core_aten_ops_exception_list=[...])."
    )
    return "\n".join(lines)
