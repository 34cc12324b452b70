"""From the calls of a sub-graph to the nodes of a payload.

Images are NHWC in the payload and NCHW in the graph, unless they lie channels-last; signals, of
rank 3, likewise have their channels last. A value is kept in the layout that it was computed in,
and permuted when a reader needs the other one; elementwise calls take it as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node

from executorch.backends.xnnpack.linear import Rows, is_weight, rows_around
from executorch.backends.xnnpack.rules import RULES, rule_of
from executorch.backends.xnnpack.serialization.payload import (
    DATATYPES,
    EXTERNAL_INPUT,
    EXTERNAL_OUTPUT,
    NO_HANDLE,
    NO_ID,
    Bounds,
    Field,
    Payload,
    kind_name,
)
from executorch.backends.xnnpack.static_quantization import (
    Constants,
    StaticCall,
    activation_kind,
    bounds_of,
    is_dequantize,
    is_quantize,
    match_static,
)
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.passes.debug_handle_generator_pass import debug_handles
from executorch.exir.sym_util import eval_expr, eval_upper_bound
from executorch.exir.tensor import CHANNELS_LAST, dim_order_of
from executorch.exir.torch_internals import schema_of

aten = exir_ops.edge.aten
INFINITY = float("inf")
# The key in `Node.meta` of a call under which `FuseActivationPass` keeps the bounds of the clamp
# that it removed.
FUSED_ACTIVATION = "XNN_FUSED_ACTIVATION"
# By rank: the permutation to channels-last order, and the permutation back.
_NHWC = {3: [0, 2, 1], 4: [0, 2, 3, 1]}
_NCHW = {3: [0, 2, 1], 4: [0, 3, 1, 2]}


def channels_last_dim(rank: int, dim: int) -> int:
    """The index of dim `dim` in channels-last order."""
    return _NHWC[rank].index(dim)


def channels_last(of_dims: Sequence[Any]) -> list[Any]:
    """What there is for each dim, in channels-last order."""
    return [of_dims[i] for i in _NHWC[len(of_dims)]]


def constants_of(program: ExportedProgram) -> dict[str, Tensor]:
    """Name of a placeholder -> tensor, for the constants that the sub-graph owns."""
    data = program.state_dict | program.constants
    return {
        s.arg.name: data[s.target]  # type: ignore[union-attr, index]
        for s in program.graph_signature.input_specs
        if s.kind is not InputKind.USER_INPUT
    }


class ConstantValues:
    """Called with a node of a graph: its tensor, if it is a placeholder that `owned` has a tensor
    for, or what calls compute from such alone; otherwise None."""

    def __init__(self, owned: Callable[[Node], Tensor | None]) -> None:
        self._owned = owned
        self._varying: dict[Graph, set[Node]] = {}

    def __call__(self, node: Any) -> Tensor | None:
        if not isinstance(node, Node) or node in self._varying_nodes(node.graph):
            return None
        needed, pending = {node}, [node]
        while pending:
            inputs = [n for n in pending.pop().all_input_nodes if n not in needed]
            needed.update(inputs)
            pending += inputs
        values: dict[Node, Any] = {}
        with torch.no_grad():
            for each in sorted(needed):
                values[each] = self._value(each, values)
                if values[each] is None:
                    return None
        return cast("Tensor", values[node])

    def _value(self, node: Node, values: dict[Node, Any]) -> Any:
        if node.op == "placeholder":
            return self._owned(node)
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: values[n])
        return node.target._op(*args, **kwargs)  # type: ignore[union-attr]

    def _varying_nodes(self, graph: Graph) -> set[Node]:
        if graph not in self._varying:
            found: set[Node] = set()
            for node in graph.nodes:
                if node.op == "placeholder":
                    varies = self._owned(node) is None
                else:
                    is_pure = getattr(node.target, "_op", None) is not None
                    inputs = node.all_input_nodes
                    varies = not is_pure or not inputs or not found.isdisjoint(inputs)
                if varies:
                    found.add(node)
            self._varying[graph] = found
        return self._varying[graph]


def tensor_of(node: Node) -> Tensor:
    """The fake tensor of a node's result; of its first result if there are several."""
    value = node.meta["val"]
    return value if isinstance(value, Tensor) else value[0]


def is_channels_last(value: Tensor) -> bool:
    """Whether a tensor has the dim order NHWC, in which its caller passes or expects it."""
    return value.dim() == len(CHANNELS_LAST) and dim_order_of(value) == CHANNELS_LAST


def shape_of(node: Node) -> list[int]:
    """The shape while tracing: its extents fit those of other values. Upper bounds need not, such
    as those of n and 2 * (n // 2). They are given for extents that depend on data."""
    shape = tensor_of(node).shape
    return [n if type(n) is int else _size_seen(n) for n in shape]


def _size_seen(extent: torch.SymInt) -> int:
    seen = eval_expr(extent)
    return eval_upper_bound(extent) if seen is None else seen


def extents_of(node: Node) -> list[int]:
    """The shape, with 0 for extents that are known at run time only."""
    return [e if isinstance(e, int) else 0 for e in tensor_of(node).shape] or [1]


def argument(node: Node, name: str, default: Any = None) -> Any:
    """An argument by its name in the operator's schema."""
    if name in node.kwargs:
        return node.kwargs[name]
    for i, each in enumerate(schema_of(node.target).arguments):
        if each.name == name:
            if i < len(node.args):
                return node.args[i]
            return each.default_value if each.has_default_value() else default
    return default


class Lowering:
    """Lowers one sub-graph to a payload. `parts_of(node, constant)` returns the other calls that
    are lowered together with a call."""

    def __init__(
        self, program: ExportedProgram, parts_of: Callable[[Node, Constants], list[Node]]
    ) -> None:
        self.payload = Payload()
        graph = program.graph_module.graph
        self.tensors: dict[Node, Tensor] = {}
        # Node -> the tensor that it stands for, if it is a constant; else None.
        self.constant: Constants = ConstantValues(self.tensors.get)
        self._ids: dict[tuple[Node, bool], int] = {}  # (node, is NHWC)
        self._slots: dict[Node, int] = {}
        self._done: set[Node] = set()
        # The call that is being lowered; for each call, the other calls that are computed together
        # with it.
        self._current: Node | None = None
        self._together: dict[Node | None, list[Node]] = {}
        self._sources: list[Node] = []  # of each node of the payload, the call
        # (floating-point node, number of dims in a row) -> id of its dynamically quantized value.
        self.quantized: dict[tuple[Node, int], int] = {}
        self.static: dict[Node, StaticCall] = {}
        self.rows: dict[Node, Rows] = {}  # around products
        # While a statically quantized call is lowered: operands and result -> the int8 nodes that
        # stand for them, and the bounds that correspond to the result's range of integers.
        self._aliases: dict[Node, Node] = {}
        self._range: Bounds = None
        repeated = self._number_externals(graph, constants_of(program))
        # For each constant node, and each call of constants only: the external data file that its
        # weights are tagged for.
        self._files: dict[Node, str | None] = {
            node: (node.meta.get("custom") or {}).get("delegate_constant_tag")
            for node in self.tensors
        }
        for node in graph.nodes:
            self._current = node
            if node.all_input_nodes and all(n in self._files for n in node.all_input_nodes):
                self._files[node] = self._file_of(node)
            self._find_together(node, parts_of(node, self.constant))
        joined = {rows.join: set(rows.join.users) for rows in self.rows.values()}
        for join, readers in joined.items():
            if readers <= self.rows.keys() and join not in self._slots:
                self._current = next(iter(join.users))
                self.skip(join)
        self._done |= self._making_weights(graph)
        self._lower_calls(graph, repeated)

    def _number_externals(self, graph: Graph, owned: dict[str, Tensor]) -> list[tuple[int, Node]]:
        """Gives inputs and results their external ids. Returns those results that are inputs, or
        were returned before: they need a copy."""
        n_inputs = 0
        for node in graph.find_nodes(op="placeholder"):
            if node.name in owned:
                self.tensors[node] = owned[node.name]
                continue
            if isinstance(node.meta["val"], Tensor):
                nhwc = is_channels_last(tensor_of(node))
                self._ids[node, nhwc] = self._value(node, nhwc, (n_inputs, EXTERNAL_INPUT))
            n_inputs += 1  # extents, which the shapes of the tensors tell too, take up a slot
        results = cast("list[Node]", graph.output_node().args[0])
        self.payload.n_externals = n_inputs + len(results)
        repeated = []
        for slot, node in enumerate(results, start=n_inputs):
            if node.op == "placeholder" or node in self._slots:
                repeated.append((slot, node))
            else:
                self._slots[node] = slot
        return repeated

    def _lower_calls(self, graph: Graph, repeated: list[tuple[int, Node]]) -> None:
        for node in graph.nodes:
            if node.op == "call_function" and node not in self._done:
                self._current = node
                self._lower(node)
                self._sources += [node] * (len(self.payload.nodes) - len(self._sources))
        for node in self._slots:
            self.read(node, is_channels_last(tensor_of(node)))
        for slot, node in repeated:
            nhwc = is_channels_last(tensor_of(node))
            to = self._value(node, nhwc, (slot, EXTERNAL_OUTPUT))
            self.payload.node("Copy", self.read(node, nhwc), to)

    def _making_weights(self, graph: Graph) -> set[Node]:
        """The calls of constants only whose results are nothing but weights and biases, or go into
        such calls: these are computed now, and stored in place of what they are computed from."""
        known = set(self.tensors)
        for node in graph.nodes:
            inputs = node.all_input_nodes
            if inputs and known.issuperset(inputs) and hasattr(node.target, "_op"):
                known.add(node)
        found: set[Node] = set()
        for node in reversed(graph.nodes):
            if node.op != "call_function" or node not in known or node in self._slots:
                continue
            if all(user in found or is_weight(node, user) for user in node.users):
                found.add(node)
        return found

    def _find_together(self, node: Node, of_dynamic_layer: list[Node]) -> None:
        """Finds the other calls that are computed together with a call."""
        self.skip(*of_dynamic_layer)
        call = match_static(node, self.constant)
        if isinstance(call, StaticCall):
            self.static[node] = call
            self.skip(*call.behind, *call.weights_from)
            self.skip(*([] if call.padding is None else [call.padding]))
        rows = rows_around(node)
        if rows is not None:
            self.rows[node] = rows
            self.skip(rows.split)

    def _file_of(self, node: Node) -> str | None:
        """The file of the first constant of a call that is tagged with one; all of the call's
        constants go there."""
        return next(filter(None, map(self._files.get, node.all_input_nodes)), None)

    def _lower(self, node: Node) -> None:
        if node.target is operator.getitem:
            return
        constant = all(n in self.tensors for n in node.all_input_nodes) and node.all_input_nodes
        if constant and node not in self._slots and node.target is aten.permute_copy.default:
            x, dims = node.args
            self.tensors[node] = self.tensors[cast("Node", x)].permute(cast("list[int]", dims))
            return
        if is_quantize(node):
            self._convert(node)
            return
        # Calls without a rule are part of a quantized layer, or are converted where their result is
        # read.
        if node.target in RULES:
            if node in self.static:
                self._aliases = self.static[node].aliases
                self._range = bounds_of(self.static[node].behind[-1])
            self.payload.file = self._file_of(node)
            RULES[node.target].lower(self, node)
            self.payload.file = None
            self._aliases, self._range = {}, None

    def _convert(self, node: Node) -> None:
        """Lowers a quantization or dequantization, in the layout of its operand."""
        x = cast("Node", node.args[0])
        nhwc = self.is_nhwc(x)
        source = self.read(x, nhwc)
        bounds = bounds_of(node) if is_quantize(node) else None
        if bounds is not None:
            clamped = self.like(source, self.payload.values[source][1])
            self.payload.node("Clamp", source, clamped, bounds=bounds)
            source = clamped
        self.emit(node, "Convert", source, self.write(node, nhwc))

    def _value(self, node: Node, nhwc: bool, external: tuple[int, int] = (NO_ID, 0)) -> int:
        dims, dtype = shape_of(node), tensor_of(node).dtype
        if nhwc:
            dims = channels_last(dims)
        if dtype != torch.int8:
            return self.payload.value(DATATYPES[dtype], dims, external)
        datatype, scheme = activation_kind(node)
        return self.payload.value(datatype, dims, external, quantization=scheme)

    def is_nhwc(self, node: Any) -> bool:
        """Whether the payload has the value in NHWC order only."""
        node = self._aliases.get(node, node)
        known = (node, True) in self._ids or (node, False) in self._ids
        if not known and is_dequantize(node):
            return self.is_nhwc(node.args[0])
        return (node, True) in self._ids and (node, False) not in self._ids

    def stored(self, node: Node) -> Tensor | None:
        """The constant, as the payload stores it, that an operand stands for."""
        return self.tensors.get(self._aliases.get(node, node))

    def read(self, node: Node, nhwc: bool = False, like: Node | None = None) -> int:
        """The id of a node's value in that layout, transposed if needed. Float constants are
        converted to the type of `like`."""
        node = self._aliases.get(node, node)
        known = (node, nhwc) in self._ids or (node, not nhwc) in self._ids
        if not known and is_dequantize(node):
            self._convert(node)
        if (node, nhwc) not in self._ids:
            if node in self.tensors:
                tensor = self.tensors[node]
                if like is not None and tensor.is_floating_point():
                    tensor = tensor.to(tensor_of(like).dtype)
                if nhwc and tensor.numel() > 1:
                    tensor = tensor.permute(_NHWC[tensor.dim()])
                self._ids[node, nhwc] = self._constant(node, tensor)
            else:
                other = self._ids[node, not nhwc]
                to = self.write(node, nhwc)
                rank = tensor_of(node).dim()
                perm = (_NHWC if nhwc else _NCHW)[rank]
                self.payload.node("StaticTranspose", rank, perm, other, to)
        return self._ids[node, nhwc]

    def _constant(self, node: Node, tensor: Tensor) -> int:
        """The id of a new constant. Integers get the scale and zero point of the dequantization
        that reads them."""
        if tensor.dtype != torch.int8:
            return self.payload.constant(tensor)
        datatype, scheme = activation_kind(node)
        data = self.payload.data(tensor)
        return self.payload.value(datatype, tensor.shape, constant=data, quantization=scheme)

    def write(self, node: Node, nhwc: bool = False) -> int:
        """The id of a new value for a node's result."""
        node = self._aliases.get(node, node)
        if node in self._slots and nhwc == is_channels_last(tensor_of(node)):
            self._ids[node, nhwc] = self._value(node, nhwc, (self._slots[node], EXTERNAL_OUTPUT))
        else:
            self._ids[node, nhwc] = self._value(node, nhwc)
        return self._ids[node, nhwc]

    def like(self, number: int, dims: Sequence[int]) -> int:
        """The id of a new value with the type and quantization of value `number`."""
        datatype, *_, scheme = self.payload.values[number]
        return self.payload.value(datatype, dims, quantization=scheme)

    def emit(self, node: Node, kind: str, *fields: Field, bounds: Bounds = None) -> None:
        handle = next(iter(debug_handles(node)), NO_HANDLE)
        self.payload.node(kind, *fields, bounds=bounds, debug_handle=handle)

    def only_user(self, node: Node) -> Node | None:
        """The only call that reads the node's result; None if there are several, or the result is
        an output of the sub-graph."""
        users = list(node.users)
        if len(users) == 1 and users[0].op == "call_function" and node not in self._slots:
            return users[0]
        return None

    def skip(self, *nodes: Node) -> None:
        """Mark nodes as computed together with the call that is being lowered."""
        self._done.update(nodes)
        self._together.setdefault(self._current, []).extend(nodes)

    def debug_handle_map(self) -> dict[str, tuple[int, ...]]:
        """Name under which the runtime reports a node of the payload -> debug handles of the calls
        it computes. Transposes between layouts are left out: the graph does not have their results.
        """
        return {
            f"{kind_name(self.payload.nodes[i][0][0])} #{i}": tuple(
                dict.fromkeys(
                    handle
                    for each in (node, *self._together.get(node, ()))
                    for handle in debug_handles(each)
                )
            )
            for i, node in enumerate(self._sources)
            if self.payload.nodes[i][1] != NO_HANDLE
        }

    def with_activation(self, node: Node) -> tuple[Node, Bounds]:
        """The node whose result to compute, and its bounds. If the call's only reader is a clamp,
        that is the clamp, which is then computed together with the call. The bounds include the
        range of a quantized result."""
        if FUSED_ACTIVATION in node.meta:
            return node, _within(node.meta[FUSED_ACTIVATION], self._range)
        user = self.only_user(node)
        if user is None or rule_of(user).kind != "Clamp":
            return node, self._range
        self.skip(user)
        return user, _within(clamp_bounds(user), self._range)

    def unary(
        self, node: Node, kind: str, *before: Field, bounds: Bounds = None, nhwc: bool | None = None
    ) -> None:
        """Write a payload node with one input, in the layout `nhwc`; None means the layout of the
        input."""
        (x,) = node.all_input_nodes[:1]
        nhwc = self.is_nhwc(x) if nhwc is None else nhwc
        ids = (self.read(x, nhwc), self.write(node, nhwc))
        self.emit(node, kind, *before, *ids, bounds=bounds)


def _within(bounds: Bounds, outer: Bounds) -> Bounds:
    if bounds is None or outer is None:
        return bounds or outer
    low, high = outer
    return (min(max(bounds[0], low), high), min(max(bounds[1], low), high))


def clamp_bounds(node: Node) -> Bounds:
    if node.target is aten.relu.default:
        return (0.0, INFINITY)
    names = ("min_val", "max_val") if node.target is aten.hardtanh.default else ("min", "max")
    low, high = (argument(node, name) for name in names)
    return (-INFINITY if low is None else float(low), INFINITY if high is None else float(high))


def is_static(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int) for v in values)
