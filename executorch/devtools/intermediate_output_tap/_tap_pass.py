"""Taps: calls of `executorch_devtools::tap` whose results are outputs of the program."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.fx import GraphModule, Node

from executorch.devtools.intermediate_output_tap import custom_ops_lib  # noqa: F401
from executorch.devtools.intermediate_output_tap._reducers import (
    STATS,
    StatReducer,
    get_reducer,
    remember,
)
from executorch.devtools.intermediate_output_tap._selectors import (
    NodeSelector,
    modules_of,
    select_all_call_function,
)
from executorch.devtools.intermediate_output_tap._spec import TapSpec
from executorch.exir.torch_internals import pytree

TapRule = tuple[NodeSelector, "str | StatReducer"]

_TAP = torch.ops.executorch_devtools.tap.Tensor


def is_tap_node(n: Node) -> bool:
    """In any dialect: an edge operator has the name of what it wraps."""
    if n.op != "call_function":
        return False
    return n.target is _TAP or getattr(n.target, "_op", None) is _TAP


def find_tap_nodes(gm: GraphModule) -> list[Node]:
    return [node for node in gm.graph.nodes if is_tap_node(node)]


def tap_intermediate_outputs_(
    ep: ExportedProgram,
    rules: Sequence[TapRule] | TapRule | None = None,
    *,
    max_taps: int | None = None,
    error_on_empty: bool = True,
) -> tuple[ExportedProgram, list[TapSpec]]:
    """Make what the rules select additional outputs of `ep`, which changes and is returned.

    rules     (selector, reducer): each node that gives a tensor is tapped as the first rule says
              that selects it; None: every call, with STATS
    max_taps  of more nodes, the first ones are tapped
    error_on_empty  ValueError if no rule selects anything; False: a warning
    """
    chosen = _checked(rules)
    graph = ep.graph_module.graph
    output = graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    outputs = ep.graph_signature.output_specs
    n_before = sum(spec.kind is OutputKind.USER_OUTPUT for spec in outputs)
    specs: list[TapSpec] = []
    for node in list(graph.nodes):
        if max_taps is not None and len(specs) >= max_taps:
            break
        reducer = _reducer_of(node, chosen)
        if reducer is None:
            continue
        remember(reducer)
        with graph.inserting_after(node):
            tap = graph.call_function(_TAP, (node, reducer.name))
        kept = ("from_node", "stack_trace", "nn_module_stack")
        tap.meta = {key: node.meta[key] for key in kept if key in node.meta}
        tap.meta["val"] = _TAP(node.meta["val"], reducer.name)
        results.append(tap)
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(tap.name), None))
        specs.append(_spec_of(node, n_before + len(specs), reducer))
    if not specs:
        message = "tap_intermediate_outputs_: the rules select no node that gives a tensor"
        if error_on_empty:
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=2)
        return ep, specs
    output.args = (tuple(results),)
    _add_results(ep, len(specs))
    ep.graph_module.recompile()
    return ep, specs


def _checked(rules: Any) -> list[tuple[NodeSelector, StatReducer]]:
    if rules is None:
        rules = [(select_all_call_function(), STATS)]
    elif isinstance(rules, tuple) and len(rules) == 2 and callable(rules[0]):
        rules = [rules]
    if not rules:
        raise ValueError("rules: expected at least one (selector, reducer), found none")
    return [(selector, get_reducer(reducer)) for selector, reducer in rules]


def _reducer_of(node: Node, rules: list[tuple[NodeSelector, StatReducer]]) -> StatReducer | None:
    is_value = node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor)
    if not is_value or is_tap_node(node):
        return None
    return next((reducer for selects, reducer in rules if selects(node)), None)


def _spec_of(node: Node, output_index: int, reducer: StatReducer) -> TapSpec:
    *_, (path, kind) = modules_of(node).values() or [(None, None)]
    return TapSpec(
        node.name,
        str(node.target),
        output_index,
        reducer.name,
        reducer.fields,
        node.meta.get("stack_trace"),
        path,
        kind,
    )


def _add_results(ep: ExportedProgram, count: int) -> None:
    """What a call returns: the values of before, then those of the taps, in one tuple."""
    for entry in ep.module_call_graph:
        if entry.fqn or entry.signature is None:
            continue
        spec = entry.signature.out_spec
        before = pytree.tree_unflatten([0] * spec.num_leaves, spec)
        before = before if isinstance(before, tuple) else (before,)
        entry.signature.out_spec = pytree.tree_structure((*before, *[0] * count))
        # Names change when the program is traced again; empty ones are not checked.
        entry.signature.outputs.extend(TensorArgument("") for _ in range(count))
