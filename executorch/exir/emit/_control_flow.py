"""Branches and loops, laid out flat in the chain of their method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule, Node

from executorch.exir import schema
from executorch.exir.emit._values import Index
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.source_line import source_line
from executorch.exir.sub_graph_regions import sub_graphs
from executorch.exir.tensor import TensorSpec

if TYPE_CHECKING:
    from executorch.exir.emit._emitter import GraphEmitter


def emit_control_flow(emitter: GraphEmitter, node: Node, graph_module: GraphModule) -> None:
    name = node.target.name()  # type: ignore[union-attr]
    if name == "cond":
        _emit_cond(emitter, node, graph_module)
    elif name == "map_impl":
        _Loop(emitter, node, graph_module).emit_map()
    elif name == "scan":
        _Loop(emitter, node, graph_module).emit_scan()
    elif name == "while_loop":
        _emit_while(emitter, node, graph_module)
    else:
        raise _not_supported(node, f"the runtime has no instructions for {name}")


def _not_supported(node: Node, what: str) -> ExportError:
    return ExportError(
        ExportErrorType.NOT_SUPPORTED, f"{node}: {what}\n  in your model: {source_line(node)}"
    )


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _bind(emitter: GraphEmitter, graph: GraphModule, values: Sequence[int]) -> None:
    placeholders = graph.graph.find_nodes(op="placeholder")
    if len(placeholders) != len(values):
        raise ValueError(f"{len(values)} operands for {len(placeholders)} inputs of a sub-graph")
    emitter.results.update(zip(placeholders, values, strict=True))


def _outputs(graph: GraphModule) -> list[Any]:
    return _items(graph.graph.output_node().args[0])


def _new_values(emitter: GraphEmitter, node: Node) -> list[Index]:
    """The values of a control flow node's results."""
    return [
        emitter.tensor(spec)
        if isinstance(spec, TensorSpec)
        else Index(emitter.table.add_number(value))
        for spec, value in zip(_items(node.meta["spec"]), _items(node.meta["val"]), strict=True)
    ]


def _emit_cond(emitter: GraphEmitter, node: Node, graph_module: GraphModule) -> None:
    """JumpFalse(pred, else); then-branch; move results; JumpFalse(false, end); else-branch; move.

    Moving hands on the branch's tensor itself. A result that is an operand in one of the branches
    is copied in both: the operand's memory may be used for another tensor later on.
    """
    predicate, _, _, *rest = node.args
    operands = [emitter.argument(a) for a in (_items(rest[0]) if rest else [])]
    branches = sub_graphs(node, graph_module)
    results = _new_values(emitter, node)
    copied = {
        k
        for branch in branches
        for k, out in enumerate(_outputs(branch))
        if not isinstance(out, Node) or out.op != "call_function"
    }
    pred = emitter.argument(predicate)

    def emit_branch(branch: GraphModule) -> None:
        _bind(emitter, branch, operands)
        emitter.emit_nodes(branch)
        for k, out in enumerate(_outputs(branch)):
            value = emitter.argument(out)
            if k in copied and isinstance(emitter.table.values[value].val, schema.Tensor):
                _copy(emitter, results[k], value)
            elif value != results[k]:
                emitter.append(schema.MoveCall(value, results[k]))

    to_else = emitter.append(schema.JumpFalseCall(pred, -1))
    emit_branch(branches[0])
    never = emitter.table.add(schema.Bool(False))
    to_end = emitter.append(schema.JumpFalseCall(never, -1))
    _land(emitter, to_else)
    emit_branch(branches[1])
    _land(emitter, to_end)
    for k, index in enumerate(results):
        if k not in copied:
            emitter.moves(index)
    emitter.results[node] = results


def _land(emitter: GraphEmitter, jump: int) -> None:
    """Let the jump lead to the next instruction."""
    call = emitter.instructions[jump].instr_args
    assert isinstance(call, schema.JumpFalseCall)
    call.destination_instruction = len(emitter.instructions)


def _emit_while(emitter: GraphEmitter, node: Node, graph_module: GraphModule) -> None:
    """Carried values = initial ones; start: condition; JumpFalse(it, end); body; carried values =
    its results; JumpFalse(false, start); end.

    The carried values are the node's results, with memory of their own, so that a loop writes no
    input and no constant, and no round leaves them what they were before the loop.
    """
    _, _, initial, *rest = node.args
    operands = [emitter.argument(a) for a in (_items(rest[0]) if rest else [])]
    condition, body = sub_graphs(node, graph_module)
    carries = _new_values(emitter, node)
    _check_carried(node, body)
    for carry, first in zip(carries, _items(initial), strict=True):
        _assign(emitter, carry, emitter.argument(first))
    start = len(emitter.instructions)
    _bind(emitter, condition, [*carries, *operands])
    emitter.emit_nodes(condition)
    to_end = emitter.append(schema.JumpFalseCall(emitter.argument(_outputs(condition)[0]), -1))
    _bind(emitter, body, [*carries, *operands])
    emitter.emit_nodes(body)
    _carry(emitter, node, carries, _outputs(body))
    never = emitter.table.add(schema.Bool(False))
    emitter.append(schema.JumpFalseCall(never, start))
    _land(emitter, to_end)
    emitter.results[node] = carries


def _check_carried(node: Node, body: GraphModule) -> None:
    """ExportError unless each carried tensor keeps its type, shape and order of dims."""
    initial = _items(node.args[2])
    before = body.graph.find_nodes(op="placeholder")[: len(initial)]
    for i, (first, carried, after) in enumerate(zip(initial, before, _outputs(body), strict=True)):
        kinds = [_kind(n) for n in (first, carried, after)]
        if len(set(kinds)) > 1:
            raise _not_supported(
                node,
                f"carried value {i} starts as {kinds[0]}, is {kinds[1]} in the body, which makes "
                f"{kinds[2]} of it; it must stay what it is from round to round",
            )


def _kind(value: Any) -> str:
    """What a carried value may not change; dynamic extents are PyTorch's to compare."""
    spec = value.meta.get("spec") if isinstance(value, Node) else None
    if not isinstance(spec, TensorSpec):
        return "a number"
    extents = [e if isinstance(e, int) else "?" for e in value.meta.get("val", spec).shape]
    order = list(spec.dim_order)
    return f"a {spec.dtype} tensor of shape {extents} and dim order {order}".replace("'", "")


def _carry(emitter: GraphEmitter, node: Node, carries: list[Index], outs: list[Any]) -> None:
    """Give the carried values what the body made of them, in order. All are read before they are
    overwritten: tensors were separated (SeparateLoopResults), numbers are set aside here."""
    values = [emitter.argument(out) for out in outs]
    for i, value in enumerate(values):
        if value in carries[:i]:
            if isinstance(emitter.table.values[value].val, schema.Tensor):
                raise _not_supported(
                    node, f"carry {i} becomes another carry unchanged; return a clone of it"
                )
            values[i] = Index(emitter.table.add(replace(emitter.table.values[value].val)))
            emitter.append(schema.MoveCall(value, values[i]))
    for carry, value in zip(carries, values, strict=True):
        _assign(emitter, carry, value)


def _assign(emitter: GraphEmitter, to: int, source: int) -> None:
    """Tensors are copied, numbers moved."""
    if to == source:
        return
    if isinstance(emitter.table.values[to].val, schema.Tensor):
        _copy(emitter, to, source)
    else:
        emitter.append(schema.MoveCall(source, to))


def _copy(emitter: GraphEmitter, to: int, source: int) -> None:
    """copy_ leaves the shape as it is, so tensors of dynamic shape are cloned."""
    tensor = emitter.table.values[to].val
    assert isinstance(tensor, schema.Tensor)
    if tensor.shape_dynamism is schema.TensorShapeDynamism.STATIC:
        blocking = emitter.table.add(schema.Bool(False))
        emitter.kernel("aten::copy_", "", [to, source, blocking, to])
    else:
        any_format = emitter.table.add(schema.Null())
        emitter.kernel("aten::clone", "out", [source, any_format, to, to])


class _Loop:
    """A body that runs once per slice of its operands along dimension 0.

    i = 0; n = size(x, 0); start: slices = x[i]; body; results[i] = ...; i += 1; until i == n.
    The counter is set to 0 before the loop, so that a call that failed leaves no trace.
    """

    def __init__(self, emitter: GraphEmitter, node: Node, graph_module: GraphModule) -> None:
        self.emitter = emitter
        self.node = node
        self.body = sub_graphs(node, graph_module)[0]
        table = emitter.table
        self.counter = table.add(schema.Int(0))
        self.count = table.add(schema.Int(0))
        self.done = table.add(schema.Bool(False))
        self.zero = table.add(schema.Int(0))
        self.one = table.add(schema.Int(1))

    def emit_map(self) -> None:
        _, xs, *rest = self.node.args
        operands = [self.emitter.argument(a) for a in (_items(rest[0]) if rest else [])]
        results = self._stacked(_items(self.node.meta["spec"]))
        start = self._begin(_items(xs))
        slices = self._slices(_items(xs), self._placeholders())
        self._run_body([*slices, *operands])
        self._store(results, _outputs(self.body))
        self._end(start)
        self.emitter.results[self.node] = results

    def emit_scan(self) -> None:
        _, init, xs, *rest = self.node.args
        init, xs = _items(init), _items(xs)
        operands = [self.emitter.argument(a) for a in (_items(rest[0]) if rest else [])]
        specs = _items(self.node.meta["spec"])
        carries = [self.emitter.tensor(spec) for spec in specs[: len(init)]]
        results = self._stacked(specs[len(init) :])
        for carry, first in zip(carries, init, strict=True):
            _assign(self.emitter, carry, self.emitter.argument(first))
        start = self._begin(xs)
        slices = self._slices(xs, self._placeholders()[len(init) :])
        self._run_body([*carries, *slices, *operands])
        outs = _outputs(self.body)
        self._store(results, outs[len(init) :])  # before a carry they may name is overwritten
        _carry(self.emitter, self.node, carries, outs[: len(init)])
        self._end(start)
        self.emitter.results[self.node] = [*carries, *results]

    def _placeholders(self) -> list[Node]:
        return self.body.graph.find_nodes(op="placeholder")

    def _stacked(self, specs: list[Any]) -> list[Index]:
        """Results grow by one slice per round, so their shape is dynamic."""
        for spec in specs:
            spec.shape_dynamism = schema.TensorShapeDynamism.DYNAMIC_BOUND
        return [self.emitter.tensor(spec) for spec in specs]

    def _begin(self, xs: list[Any]) -> int:
        emitter = self.emitter
        first = emitter.argument(xs[0])
        prim = "executorch_prim::sub"
        emitter.kernel(prim, "Scalar", [self.counter, self.counter, self.counter])
        emitter.kernel("aten::sym_size", "int", [first, self.zero, self.count])
        return len(emitter.instructions)

    def _slices(self, xs: list[Any], placeholders: list[Node]) -> list[Index]:
        emitter = self.emitter
        slices: list[Index] = []
        for x, placeholder in zip(xs, placeholders[: len(xs)], strict=True):
            part = emitter.tensor(placeholder.meta["spec"])
            args = [emitter.argument(x), self.zero, self.counter, part, part]
            emitter.kernel("aten::select_copy", "int_out", args)
            slices.append(part)
        return slices

    def _run_body(self, values: Sequence[int]) -> None:
        _bind(self.emitter, self.body, values)
        self.emitter.emit_nodes(self.body)

    def _store(self, results: list[Index], outs: list[Any]) -> None:
        for result, out in zip(results, outs, strict=True):
            args = [result, self.emitter.argument(out), self.counter]
            self.emitter.kernel("executorch_prim::et_copy_index", "tensor", args)

    def _end(self, start: int) -> None:
        emitter = self.emitter
        emitter.kernel("executorch_prim::add", "Scalar", [self.counter, self.one, self.counter])
        emitter.kernel("executorch_prim::eq", "Scalar", [self.counter, self.count, self.done])
        emitter.append(schema.JumpFalseCall(self.done, start))
