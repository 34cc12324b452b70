"""Kernel yaml: which function of the user computes which operator, for which types and orders.

- func: my_ops::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
  type_alias: {T: [Float, Double]}
  dim_order_alias: {D: [0, 1]}
  kernels:
    - arg_meta: null                         # any tensors
      kernel_name: my_ops::scale_out         # my_ops::native::scale_out(ctx, x, factor, out)
    - arg_meta: {x: [T, D], out: [T, D]}     # one kernel key per value of T
      kernel_name: my_ops::scale_2d_out
- op: add.out                                # an ATen operator: its signature is known
  kernels: [{arg_meta: null, kernel_name: my_ops::add_out}]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from executorch.codegen.builtin import builtin_operators
from executorch.codegen.selection import (
    DEFAULT,
    CodegenError,
    load_entries,
    operator_of,
    scalar_type,
)

# Type of a schema's argument -> parameter of a kernel. Tensors that are written are Tensor&.
_PARAMETERS = {
    "Tensor": "const Tensor&",
    "Tensor?": "const std::optional<Tensor>&",
    "Tensor[]": "ArrayRef<Tensor>",
    "Tensor?[]": "ArrayRef<std::optional<Tensor>>",
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "Scalar": "const Scalar&",
    "ScalarType": "ScalarType",
    "MemoryFormat": "MemoryFormat",
    "Layout": "Layout",
    "Device": "Device",
    "int[]": "ArrayRef<int64_t>",
    "float[]": "ArrayRef<double>",
    "bool[]": "ArrayRef<bool>",
}


@dataclass(frozen=True)
class Kernel:
    """A function of the user, registered for `operator` and one kernel key."""

    operator: str
    key: str  # DEFAULT or v1/...
    namespace: str  # my_ops::native
    name: str  # scale_out
    declaration: str  # what the header says, without the namespace


def parse_kernel_yaml(path: Path) -> list[Kernel]:
    """All kernels of a yaml of the user."""
    return [kernel for entry in load_entries(path) for kernel in _kernels_of(entry, path)]


def _kernels_of(entry: dict[str, Any], path: Path) -> list[Kernel]:
    operator = operator_of(entry, path)
    where = f"{path}: {operator}"
    listed = entry.get("kernels")
    if not isinstance(listed, list) or not listed:
        raise CodegenError(f"{where}: no `kernels`")
    found = []
    for item in listed:
        qualified = str(item.get("kernel_name", ""))
        namespace, _, name = qualified.rpartition("::")
        if not name or not namespace:
            raise CodegenError(f"{where}: kernel_name {qualified!r}, expected namespace::function")
        # By convention the functions lie one namespace deeper than the yaml says.
        if not namespace.endswith("::native"):
            namespace += "::native"
        declaration = _declaration(entry, operator, name, where)
        for key in _keys(item.get("arg_meta"), entry, where):
            found.append(Kernel(operator, key, namespace, name, declaration))
    return found


def _declaration(entry: dict[str, Any], operator: str, name: str, where: str) -> str:
    if "func" not in entry:
        builtin = builtin_operators().get(operator)
        if builtin is None:
            raise CodegenError(f"{where}: `op` names an operator that is not known; give `func`")
        return f"decltype({builtin.function}) {name};"
    from torchgen.model import FunctionSchema  # needed for schemas in yamls only

    name_of_schema, bracket, rest = entry["func"].partition("(")
    schema = name_of_schema.rpartition("::")[2] + bracket + rest
    try:
        parsed = FunctionSchema.parse(schema)
    except (AssertionError, ValueError, RuntimeError) as e:
        raise CodegenError(f"{where}: not a schema: {e}") from e
    parameters = ["KernelRuntimeContext& ctx"]
    for argument in parsed.arguments.flat_all:
        written = argument.annotation is not None and argument.annotation.is_write
        parameters.append(f"{_parameter(str(argument.type), written, where)} {argument.name}")
    results = [_result(str(r.type), where) for r in parsed.returns]
    result = results[0] if len(results) == 1 else f"std::tuple<{', '.join(results)}>"
    return f"{result if results else 'void'} {name}({', '.join(parameters)});"


def _parameter(type_: str, written: bool, where: str) -> str:
    if written and type_ == "Tensor":
        return "Tensor&"
    optional = type_.endswith("?") and type_ not in _PARAMETERS
    plain = type_.removesuffix("?") if optional else type_
    plain = plain.replace("SymInt", "int")
    if "[" in plain:  # int[2] is a list like any other
        plain = plain[: plain.index("[")] + "[]"
    if plain not in _PARAMETERS:
        raise CodegenError(f"{where}: arguments of type {type_} are not supported")
    parameter = _PARAMETERS[plain]
    if not optional:
        return parameter
    value = parameter.removeprefix("const ").removesuffix("&")
    return f"const std::optional<{value}>&" if plain == "Scalar" else f"std::optional<{value}>"


def _result(type_: str, where: str) -> str:
    results = {"Tensor": "Tensor&", "int": "int64_t", "SymInt": "int64_t", "float": "double"}
    results |= {"bool": "bool", "Scalar": "Scalar"}
    if type_ not in results:
        raise CodegenError(f"{where}: results of type {type_} are not supported")
    return results[type_]


def _keys(arg_meta: Any, entry: dict[str, Any], where: str) -> list[str]:
    """One key per choice of values for the aliases that `arg_meta` uses."""
    if arg_meta is None:
        return [DEFAULT]
    types = {k: _listed(v) for k, v in (entry.get("type_alias") or {}).items()}
    orders = {k: _orders(v) for k, v in (entry.get("dim_order_alias") or {}).items()}
    used_types = sorted({t for t, _ in arg_meta.values()})
    used_orders = sorted({d for _, d in arg_meta.values()})
    for alias, known in [*((t, types) for t in used_types), *((d, orders) for d in used_orders)]:
        if alias not in known:
            raise CodegenError(f"{where}: alias {alias} is not defined")
    keys = []
    for choice in product(*(types[t] for t in used_types), *(orders[d] for d in used_orders)):
        chosen = dict(zip([*used_types, *used_orders], choice, strict=True))
        parts = [
            f"{scalar_type(chosen[t], where)};{','.join(map(str, chosen[d]))}"
            for t, d in arg_meta.values()
        ]
        keys.append("v1/" + "|".join(parts))
    return keys


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _orders(value: list[Any]) -> list[list[int]]:
    """An alias is one order or a list of orders."""
    return value if value and isinstance(value[0], list) else [value]
