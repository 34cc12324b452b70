"""`executorch::update_cross_attn_cache(value, cache)` writes `cache`, which its schema does not
say, so that branches of `torch.cond` may call it; here it becomes writes that torch knows."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import attribute_of, insert_before, replace_node
from executorch.exir.graph.operator_kind import is_higher_order, overload_of
from executorch.exir.graph.program_view import renamed_signature
from executorch.exir.graph.source_line import source_line
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.torch_internals import schema_of, set_parts

aten = torch.ops.aten

_UPDATE, _ALIAS = "executorch::update_cross_attn_cache", "executorch::alias"


def write_cross_attention_caches(program: ExportedProgram) -> ExportedProgram:
    """`program` without calls of the two operators, as a new program; `program` itself if it has
    none.

    Before    y = update_cross_attn_cache(value, cache)          a, b = alias(x, y)
    After     cache[:, :, :tokens].copy_(value); y = clone(cache)      a, b = clone(x), clone(y)
              In a branch, which may not write, its cache's new value is one more result of the
              cond, which is copied behind it.
    Requires  a program as torch.export gives it, before it is made functional.
    Raises    ExportError for a call below other control flow, and for a branch that has views of
              what it writes.
    """
    if not any(_called(n) for m in all_graph_modules(program.graph_module) for n in m.graph.nodes):
        return program
    new = copy.copy(program)
    set_parts(new, graph_module=copy.deepcopy(program.graph_module))
    set_parts(new, graph_signature=renamed_signature(program.graph_signature, new.graph_module))
    _rewrite(new.graph_module)
    return new


def _called(node: Node) -> str:
    op = overload_of(node.target) if node.op == "call_function" else None
    return op.name() if op is not None and op.name() in (_UPDATE, _ALIAS) else ""


def _rewrite(module: GraphModule) -> None:
    """A method's graph, which may write."""
    for node in list(module.graph.nodes):
        if _called(node) == _UPDATE:
            value, cache = node.args
            rows = insert_before(node, aten.slice.Tensor, (cache, 2, 0, _tokens(node, value)))
            insert_before(node, aten.copy_.default, (rows, value))
            replace_node(node, insert_before(node, aten.clone.default, (cache,)))
        elif _called(node) == _ALIAS:
            _clone_both(node)
        elif is_higher_order(node):
            for operand, result in _results_of_writes(module, node).items():
                with module.graph.inserting_after(result):
                    write = module.graph.call_function(aten.copy_.default, (operand, result))
                write.meta = {**result.meta}
    module.recompile()


def _results_of_writes(module: GraphModule, call: Node) -> dict[Node, Node]:
    """What a cond writes -> the value that it has then, a new result of the cond."""
    below = [n for n in call.args if isinstance(n, Node) and n.op == "get_attr"]
    branches = [attribute_of(module, str(n.target)) for n in below]
    branches = [b for b in branches if isinstance(b, GraphModule)]
    if call.target is not torch.ops.higher_order.cond:
        for branch in branches:
            _refuse(branch)
        return {}
    written = [_make_functional(branch) for branch in branches]
    operands: Any = call.args[3]
    indices = sorted({i for places in written for i in places})
    for branch, places in zip(branches, written, strict=True):
        _return_too(branch, places, indices)
    found: dict[Node, Node] = {}
    n_before = len(call.meta["val"])
    values = [operands[i].meta["val"] for i in indices]
    call.meta["val"] = (*call.meta["val"], *(v.clone() for v in values))
    for place, i in enumerate(indices):
        with call.graph.inserting_after(call):
            result = call.graph.call_function(operator.getitem, (call, n_before + place))
        result.meta["val"] = call.meta["val"][n_before + place]
        found[operands[i]] = result
    return found


def _make_functional(branch: GraphModule) -> dict[int, Node]:
    """Give calls of a branch values in the place of writes. Index of each operand that is written
    -> its value at the end."""
    now: dict[Node, Node] = {}  # what was written -> its value
    operands = branch.graph.find_nodes(op="placeholder")
    for node in list(branch.graph.nodes):
        cache = node.args[1] if _called(node) == _UPDATE else None
        node.args = map_arg(node.args, lambda n: now.get(n, n))
        node.kwargs = map_arg(node.kwargs, lambda n: now.get(n, n))
        if isinstance(cache, Node):
            value, before = node.args
            _refuse_views(node, (cache, before))
            args = (before, value, 2, 0, _tokens(node, value))
            after = insert_before(node, aten.slice_scatter.default, args)
            now[cache] = after
            replace_node(node, after)
        elif _called(node) == _ALIAS:
            _clone_both(node)
        elif is_higher_order(node):
            now.update(_results_of_writes(branch, node))
    branch.recompile()
    return {i: now[operand] for i, operand in enumerate(operands) if operand in now}


def _return_too(branch: GraphModule, written: dict[int, Node], indices: list[int]) -> None:
    """Results of a branch are tensors of their own: what is not written, and what is returned
    already, is copied."""
    output = branch.graph.output_node()
    operands = branch.graph.find_nodes(op="placeholder")
    results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    for i in indices:
        value = written.get(i, operands[i])
        if i not in written or value in results:
            value = insert_before(output, aten.clone.default, (value,), value=value.meta["val"])
        results.append(value)
    output.args = (tuple(results),)
    branch.recompile()


def _tokens(call: Node, value: Any) -> Any:
    size = value.meta["val"].shape[2]
    if isinstance(size, int):
        return size
    return insert_before(call, aten.sym_size.int, (value, 2), value=size)


def _clone_both(alias: Node) -> None:
    for part in list(alias.users):
        given = alias.args[part.args[1]]  # type: ignore[index]
        replace_node(part, insert_before(part, aten.clone.default, (given,)))
    alias.graph.erase_node(alias)


def _refuse_views(call: Node, written: tuple[Any, ...]) -> None:
    for node in written:
        if _is_view(node) or any(_is_read_later(user, call) for user in node.users if user < call):
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"{call}: a branch writes {node}, of which a view is read later; give it a whole "
                f"tensor, such as a buffer, and read that\n  in your model: {source_line(call)}",
            )


def _is_read_later(node: Node, call: Node) -> bool:
    """Whether `node` is a view that something behind `call` reads."""
    users = node.users if _is_view(node) else ()
    return any(call < user or _is_read_later(user, call) for user in users)


def _is_view(node: Node) -> bool:
    op = overload_of(node.target) if node.op == "call_function" else None
    return op is not None and any(r.alias_info is not None for r in schema_of(op).returns)


def _refuse(module: GraphModule) -> None:
    for inner in all_graph_modules(module):
        for node in inner.graph.nodes:
            if _called(node):
                raise ExportError(
                    ExportErrorType.NOT_SUPPORTED,
                    f"{node}: {node.target} is called below control flow that is no torch.cond\n"
                    f"  in your model: {source_line(node)}",
                )
