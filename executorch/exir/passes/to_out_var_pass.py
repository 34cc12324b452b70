from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir import memory
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.operator_kind import (
    is_inplace,
    is_out_variant,
    is_symbolic,
    overload_of,
)
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.graph.source_line import source_line
from executorch.exir.tensor import TensorSpec
from executorch.exir.torch_internals import schema_of


class ToOutVarPass(Pass):
    """Let every operator write into memory that is planned for its result.

    Before    y = aten.add.Tensor(a, b)
    After     m = memory.alloc(((2, 3), float32)); y = aten.add.out(a, b, out=m)
    Requires  specs with numbers for extents.
    Ensures   m and y share one spec; a result that is a list has one alloc of a list, whose parts
              are read where the operator returns nothing; one that is None is an empty tensor.
    Leaves    in-place operators, views, getitem, control flow, delegate calls and operators on
              numbers. An operator without an out variant is an ExportError, or left too with
              `ignore_to_out_var_failure`.
    """

    takes = frozenset({Dialect.BACKEND})

    def __init__(self, ignore_to_out_var_failure: bool = False) -> None:
        self.ignore_to_out_var_failure = ignore_to_out_var_failure
        self.gives = None if ignore_to_out_var_failure else Dialect.OUT

    def edit(self, view: ProgramView) -> bool:
        missing: dict[str, Node] = {}
        for graph_module in view.graph_modules():
            for node in list(graph_module.graph.nodes):
                op = overload_of(node.target) if node.op == "call_function" else None
                if op is None or is_symbolic(op) or is_out_variant(op) or is_inplace(op):
                    continue
                if not _returns_tensors(node):
                    continue
                try:
                    out_variant = _out_variant_of(node.target)
                except (RuntimeError, NotImplementedError):
                    missing.setdefault(op.name(), node)
                    continue
                _convert(node, out_variant)
        if missing and not self.ignore_to_out_var_failure:
            raise ExportError(ExportErrorType.NOT_SUPPORTED, _report(missing))
        return True


def _out_variant_of(target: Any) -> Any:
    if not hasattr(target, "to_out_variant"):
        from executorch.exir.dialects.edge._ops import edge_op

        target = edge_op(target)
    return target.to_out_variant()


def _returns_tensors(node: Node) -> bool:
    spec = node.meta.get("spec")
    return isinstance(spec, TensorSpec) or (isinstance(spec, (list, tuple)) and len(spec) > 0)


def _convert(node: Node, out_variant: Any) -> None:
    arguments = schema_of(out_variant).arguments
    outs = [a for a in arguments if a.is_out]
    spec = node.meta["spec"]
    if len(outs) > 1 and len(outs) != len(spec):
        raise ExportError(
            ExportErrorType.NOT_SUPPORTED,
            f"{node}: {node.target} has {len(spec)} results, its out variant {len(outs)}",
        )
    results = (
        [(spec, node.meta.get("val"))]
        if len(outs) == 1
        else list(zip(spec, node.meta["val"], strict=True))
    )
    allocations = {}
    with node.graph.inserting_before(node):
        for argument, (part, value) in zip(outs, results, strict=True):
            if part is None:  # a result that was not asked for, as of convolution_backward
                value = torch.empty(0)
                part = TensorSpec.from_tensor(value)
            alloc = node.graph.call_function(memory.alloc, (_describe(part),))
            alloc.meta = {"spec": part, "val": value}
            allocations[argument.name] = alloc
    accepted = {a.name for a in arguments}
    kwargs = {k: v for k, v in node.kwargs.items() if k in accepted}
    _check_positional(node, arguments)
    node.target = out_variant
    node.kwargs = {**kwargs, **allocations}
    if not schema_of(out_variant).returns:
        (alloc,) = allocations.values()
        node.replace_all_uses_with(alloc)
        node.kwargs = {**node.kwargs, **allocations}


def _check_positional(node: Node, arguments: Any) -> None:
    """Positional arguments keep their meaning if both schemas start with the same names."""
    functional = schema_of(node.target).arguments
    for i, _ in enumerate(node.args):
        if functional[i].name != arguments[i].name:
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"{node}: argument {i} of {node.target} is {functional[i].name}, of its out "
                f"variant {arguments[i].name}",
            )


def _describe(spec: Any) -> Any:
    if isinstance(spec, TensorSpec):
        return (tuple(spec.shape), spec.dtype)
    return [_describe(part) for part in spec]


def _report(missing: dict[str, Node]) -> str:
    lines = ["operators without an out variant, which the runtime needs:"]
    for name, node in missing.items():
        lines.append(f"  {name}, node {node}, in your model: {source_line(node)}")
    if any(name.startswith("transformers::grouped_mm") for name in missing):
        lines.append(
            "executorch.export.experts.replace_experts(model), before the export, writes mixtures "
            "of experts of transformers with other operators"
        )
    lines.append("Lower them to a backend, write them with other operators, or register, e.g.")
    lines += [f"  torch.library.define({_wanted(node)})" for node in missing.values()]
    return "\n".join(lines)


def _wanted(node: Node) -> str:
    """The arguments of torch.library.define() for the out variant of a node's operator."""
    schema = schema_of(node.target)
    inputs = str(schema).partition("(")[2].rpartition(") ->")[0]
    n = len(schema.returns)
    names = ["out"] if n == 1 else [f"out{i}" for i in range(n)]
    marks = [f"Tensor({chr(ord('a') + i)}!)" for i in range(n)]
    outs = ", ".join(f"{mark} {name}" for mark, name in zip(marks, names, strict=True))
    star = "" if "*" in inputs else "*, "
    result = marks[0] if n == 1 else f"({', '.join(marks)})"
    separator = ", " if inputs else ""
    return f"'{schema.name}.out', '({inputs}{separator}{star}{outs}) -> {result}'"
