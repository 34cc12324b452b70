"""From an operator to its out variant, and what a schema says about writing."""

from __future__ import annotations

from typing import Any

import torch

from executorch.exir.dialects.edge._ops import find_out_variant
from executorch.exir.graph.operator_kind import is_inplace, overload_of
from executorch.exir.graph.operator_kind import is_out_variant as _is_out_variant
from executorch.exir.torch_internals import OpOverload, schema_of


def to_out_variant(op_overload: OpOverload) -> tuple[OpOverload, tuple[str, ...]]:
    """The out variant of an operator, itself if it is one, and the names of its out arguments.

    RuntimeError if no overload of the operator's name takes the same inputs.
    """
    out = op_overload if _is_out_variant(op_overload) else find_out_variant(op_overload)
    return out, get_out_args_from_opoverload(out)


def get_out_args_from_opoverload(op_overload: OpOverload) -> tuple[str, ...]:
    """The names of an out variant's out arguments; ValueError for another operator."""
    names = tuple(a.name for a in schema_of(op_overload).arguments if a.is_out)
    if not names:
        raise ValueError(f"{op_overload}: expected an out variant, found {schema_of(op_overload)}")
    return names


def parse_qualified_opname(qualified_opname: str) -> tuple[str, str]:
    """`("aten", "add")` of `aten::add`."""
    parts = qualified_opname.split("::")
    if len(parts) != 2:
        raise RuntimeError(f"expected the name of an operator, namespace::name: {qualified_opname}")
    return parts[0], parts[1]


def get_op_overload(qualified_opname: str, overload: str) -> OpOverload:
    """The torch operator of a name, `aten::add`, and an overload's, "" for `default`."""
    namespace, name = parse_qualified_opname(qualified_opname)
    op: OpOverload = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    return op


def is_out_variant(qualified_opname: str, overload: str) -> bool:
    return _is_out_variant(get_op_overload(qualified_opname, overload))


def is_inplace_variant(qualified_opname: str, overload: str) -> bool:
    return is_inplace(get_op_overload(qualified_opname, overload))


def unwrap_op_overload(target: Any) -> OpOverload:
    """The torch operator behind an edge or backend operator; TypeError for anything else."""
    op = overload_of(target)
    if op is None:
        raise TypeError(f"expected an operator, found {type(target).__name__} {target!r}")
    return op


def output_to_aliased_input_map(schema: torch.FunctionSchema) -> dict[int, int]:
    """Which argument a result is: of `add_`, {0: 0}. Results in memory of their own are left out,
    and those that are views of arguments."""
    written: dict[frozenset[str], int] = {}
    for i, argument in enumerate(schema.arguments):
        alias = argument.alias_info
        if alias is not None and alias.is_write:
            written.setdefault(frozenset(alias.before_set), i)
    found = {}
    for i, result in enumerate(schema.returns):
        alias = result.alias_info
        if alias is not None and alias.is_write and frozenset(alias.before_set) in written:
            found[i] = written[frozenset(alias.before_set)]
    return found
