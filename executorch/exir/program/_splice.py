"""Builds the core graph of a program from templates of its operator calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import sympy
import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import rebind_unbacked
from torch.fx.node import map_aggregate
from torch.fx.traceback import NodeSource, NodeSourceAction

from executorch.exir.graph.graph_edit import layout_key, value_of
from executorch.exir.graph.number_nodes import append_number
from executorch.exir.program._template import (
    NeedsFunctionalization,
    Ref,
    Step,
    Table,
    Template,
    trace,
)
from executorch.exir.torch_internals import OpOverload, pytree, schema_of, take_name

# Whether a call stays whole whose operator may.
Wanted = Callable[[Node], bool]

_SYMBOLIC = (SymInt, SymFloat, SymBool)
_NOT_INHERITED = ("val", "tensor_meta", "unbacked_bindings", "eager_input_vals")
_DROPPED = {torch.ops.aten._assert_tensor_metadata.default}


class Splicer:
    """One new graph.

    `new_values[node]` is what an old node became: a node, a number, or a list of those. If
    `only_table`, calls of operators that the table does not have are copied, and views stay views.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        table: Table,
        keep: Mapping[OpOverload, Wanted | None],
        fake_mode: Any,
        only_table: bool = False,
    ) -> None:
        self.old = graph_module
        self.only_table = only_table
        self.full_table = table
        self.table = {op: how for op, how in table.items() if op not in keep}
        self.wanted = keep
        self.keep = set(keep)
        self.fake_mode = fake_mode
        self.graph = Graph()
        self.new_values: dict[Node, Any] = {}
        self.templates: dict[Any, Template] = {}
        self.keys: dict[int, Any] = {}
        self.numbers: dict[sympy.Expr, Node] = {}
        self.counted: set[sympy.Expr] = set()  # sizes that depend on data
        self.roots: dict[Node, Any] = {}  # old node -> the tensor it is, or is a view of
        self.names: dict[Any, list[Node]] = {}  # root -> old nodes
        self.viewed: set[Any] = set()  # roots with views, or owned by the caller
        self.item_roots: dict[tuple[Node, int], Any] = {}
        self.meta: dict[str, Any] = {}

    def run(self) -> Graph:
        """The new graph; raises NeedsFunctionalization if only torch can make it."""
        for node in self.old.graph.nodes:
            self.meta = _inherited(node)
            getattr(self, node.op)(node)
        return self.graph

    def placeholder(self, node: Node) -> None:
        new = self.graph.placeholder(str(node.target))
        if new.name != node.name:  # a name the graph would not choose, such as `input`
            take_name(new, node.name)
        new.meta = dict(node.meta)
        self.new_values[node] = new
        self._name(node, node, is_view=True)
        value = node.meta.get("val")
        if isinstance(value, SymInt) and value.node.expr.is_Symbol:
            self.numbers[value.node.expr] = new

    def output(self, node: Node) -> None:
        new = self.graph.output(self._renewed(node.args[0]))
        new.meta = {**self.meta, "val": value_of(new.args[0])}

    def get_attr(self, node: Node) -> None:
        raise NeedsFunctionalization(f"attribute {node.target}")

    call_module = call_method = get_attr

    def call_function(self, node: Node) -> None:
        target = node.target
        if target in _DROPPED:
            return
        if target is operator.getitem:
            self._getitem(node)
        elif isinstance(target, OpOverload) and _returns_tensors(node, target):
            if self.only_table and target not in self.table:
                self._copy(node, target)
            else:
                self._splice(node)
        else:
            self._number_or_fail(node)

    # Numbers.

    def _number_or_fail(self, node: Node) -> None:
        """Copy a call on or to symbolic numbers; equal expressions are one node."""
        value = node.meta.get("val")
        if node.target is torch.ops.aten.item.default:
            target: Any = torch.ops.aten._local_scalar_dense.default
        else:
            target = node.target
        no_result = isinstance(target, OpOverload) and not schema_of(target).returns
        if not isinstance(value, (*_SYMBOLIC, int, float, bool)) and not no_result:
            raise NeedsFunctionalization(f"{target} is no operator")
        if isinstance(target, OpOverload) and schema_of(target).is_mutable:
            raise NeedsFunctionalization(f"{target} writes to its arguments")
        expression = value.node.expr if isinstance(value, _SYMBOLIC) else None
        known = self.numbers.get(expression) if expression is not None else None
        if known is not None and "unbacked_bindings" not in node.meta:
            self.new_values[node] = known
            return
        new = self._call(target, self._renewed(node.args), self._renewed(node.kwargs), value)
        if "unbacked_bindings" in node.meta:
            new.meta["unbacked_bindings"] = node.meta["unbacked_bindings"]
        if expression is not None:
            self.numbers[expression] = new
        self.new_values[node] = new

    def _number(self, value: Any) -> Any:
        """A node for a symbolic number, made from the sizes of inputs if there is none yet."""
        if not isinstance(value, _SYMBOLIC):
            return value
        expression = value.node.expr
        if expression.is_number:
            return value.node.maybe_as_int() if isinstance(value, SymInt) else float(expression)
        if expression not in self.numbers:
            self._make_number(expression)
        return self.numbers[expression]

    def _make_number(self, expression: sympy.Expr) -> None:
        for symbol in expression.free_symbols:
            if symbol not in self.numbers:
                self._size_node(symbol)
        if expression in self.numbers:
            return
        self.numbers[expression] = append_number(self.graph, expression, self.numbers, self.meta)

    def _size_node(self, symbol: sympy.Symbol) -> None:
        """`sym_size` of the first tensor with a dimension of this symbol."""
        for node in self.graph.nodes:
            value = node.meta.get("val")
            if not isinstance(value, Tensor):
                continue
            for dim, size in enumerate(value.shape):
                if isinstance(size, SymInt) and size.node.expr == symbol:
                    target = torch.ops.aten.sym_size.int
                    self.numbers[symbol] = self._call(target, (node, dim), {}, size)
                    return
        raise NeedsFunctionalization(f"no tensor has a dimension {symbol}")

    # Tensors.

    def _getitem(self, node: Node) -> None:
        source, index = node.args
        self.new_values[node] = self.new_values[source][index]  # type: ignore[index]
        self._name(node, self.item_roots.get((source, index), node))  # type: ignore[arg-type]

    def _copy(self, node: Node, target: OpOverload) -> None:
        if schema_of(target).is_mutable:
            raise NeedsFunctionalization(f"{target} writes to its arguments")
        args, kwargs = self._renewed(node.args), self._renewed(node.kwargs)
        new = self.graph.create_node("call_function", target, args, kwargs, name=node.name)
        new.meta = {**node.meta, **self.meta}
        value = node.meta.get("val")
        if isinstance(value, (list, tuple)):
            items = enumerate(value)
            self.new_values[node] = [_Item(self, new, i, v, self.meta) for i, v in items]
        else:
            self.new_values[node] = new
        for each in (node, *node.all_input_nodes):  # any result may be a view of any operand
            self._name(each, self.roots.get(each, each), is_view=True)

    def _splice(self, node: Node) -> None:
        tensors: list[Node] = []
        arguments = (self._key(node.args, tensors), self._key(node.kwargs, tensors))
        key = (node.target, self._is_refused(node), *arguments)
        template = self.templates.get(key)
        if template is None:
            template = self._trace(node, tensors)
            if node.meta.get("unbacked_bindings"):  # sizes that depend on data are each call's own
                self._keep_sizes(node, template)
            else:
                self.templates[key] = template
        refs: dict[Ref, Any] = {Ref(-1, i): self.new_values[t] for i, t in enumerate(tensors)}
        for number, step in enumerate(template.steps):
            args, kwargs = self._filled(step.args, refs), self._filled(step.kwargs, refs)
            new = self._call(step.target, args, kwargs, step.value)
            if isinstance(step.value, (list, tuple)):
                for i, value in enumerate(step.value):
                    refs[Ref(number, i)] = _Item(self, new, i, value, self.meta)
            else:
                refs[Ref(number, None)] = new
        self._rebind(node, template, tensors, refs)
        self.new_values[node] = map_aggregate(
            template.outputs, lambda o: refs[o] if isinstance(o, Ref) else self._number(o)
        )
        self._name_results(node, template, tensors)

    def _trace(self, node: Node, tensors: list[Node]) -> Template:
        fake: dict[Node, Tensor] = {}
        for each in tensors:
            value = _value(self.new_values[each])
            if any(value is other for other in fake.values()):
                # Equal calls share fake values; here every argument needs a tensor of its own.
                with self.fake_mode:
                    shape, strides = value.shape, value.stride()
                    value = torch.empty_strided(
                        shape, strides, dtype=value.dtype, device=value.device
                    )
            fake[each] = value.detach() if value.requires_grad else value
        inputs = [fake[each] for each in tensors]

        def argument(a: Any) -> Any:
            if not isinstance(a, Node):
                return a
            return fake[a] if a in fake else a.meta["val"]

        args = torch.fx.node.map_arg(node.args, argument)
        kwargs = torch.fx.node.map_arg(node.kwargs, argument)
        assert isinstance(node.target, OpOverload)
        apart = {node.target} if self._is_refused(node) else set()
        while True:
            table = {
                **self.table,
                **{op: self.full_table[op] for op in apart & self.full_table.keys()},
            }
            template = trace(
                node.target,
                args,
                kwargs,
                inputs,
                table,
                self.keep - apart,
                self.fake_mode,
                copies_views=not self.only_table,
            )
            refused = self._refused_inside(node, template, tensors)
            if not refused:
                return template
            apart |= refused

    def _refused_inside(
        self, node: Node, template: Template, tensors: list[Node]
    ) -> set[OpOverload]:
        """Operators that stay whole in general, but not where `template` calls them.

        The functions that want them are shown the calls as nodes, which read nodes of the program.
        """

        def wanted(step: Step) -> Wanted | None:
            return None if step.target is node.target else self.wanted.get(step.target)

        refused: set[OpOverload] = set()
        if not any(map(wanted, template.steps)):
            return refused
        graph = Graph()
        refs: dict[Ref, Node] = {Ref(-1, i): t for i, t in enumerate(tensors)}

        def shown(target: Any, args: Any, kwargs: Any, value: Any) -> Node:
            filled = map_aggregate((args, kwargs), lambda a: refs[a] if isinstance(a, Ref) else a)
            call = graph.call_function(target, *filled)  # type: ignore[misc]
            call.meta = {**self.meta, "val": value}
            return call

        for number, step in enumerate(template.steps):
            call = shown(step.target, step.args, step.kwargs, step.value)
            refs[Ref(number, None)] = call
            if isinstance(step.value, (list, tuple)):
                for i, value in enumerate(step.value):
                    refs[Ref(number, i)] = shown(operator.getitem, (call, i), {}, value)
            asked = wanted(step)
            if asked is not None and not asked(call):
                refused.add(step.target)
        for call in reversed(graph.nodes):
            graph.erase_node(call)
        return refused

    def _keep_sizes(self, node: Node, template: Template) -> None:
        """The symbols of sizes that depend on data are those of the program, with their bounds."""
        result = map_aggregate(
            template.outputs, lambda o: template.values[o] if isinstance(o, Ref) else o
        )
        paths = node.meta["unbacked_bindings"].values()
        sizes = [pytree.key_get(result, path) for path in paths]
        sizes = [size for size in sizes if isinstance(size, _SYMBOLIC)]
        # Equal calls share fake values, and with them what torch stores in those, such as the
        # symbol for the number of true elements of a mask.
        if any(size.node.expr in self.counted for size in sizes):
            raise NeedsFunctionalization(f"{node} has a size that another node has")
        rebind_unbacked(self.fake_mode.shape_env, node, result)
        self.counted |= {size.node.expr for size in sizes}

    def _is_refused(self, node: Node) -> bool:
        """Whether the operator stays whole in general, but not here."""
        wanted = self.wanted.get(node.target)  # type: ignore[call-overload]
        return wanted is not None and not wanted(node)

    def _filled(self, tree: Any, refs: dict[Ref, Any]) -> Any:
        def fill(a: Any) -> Any:
            if isinstance(a, Ref):
                return _node(refs[a])
            return self._number(a) if isinstance(a, _SYMBOLIC) else a

        return map_aggregate(tree, fill)

    def _call(self, target: Any, args: Any, kwargs: Any, value: Any) -> Node:
        new = self.graph.call_function(target, tuple(args), dict(kwargs))
        new.meta = {**self.meta, "val": value}
        return new

    def _renewed(self, tree: Any) -> Any:
        return torch.fx.node.map_arg(tree, lambda n: _node(self.new_values[n]))

    def _key(self, tree: Any, tensors: list[Node]) -> Any:
        """A hashable description of arguments. A tensor is its index in `tensors`, to which it is
        added, and its dtype, shape, strides and device."""
        if isinstance(tree, Node):
            value = tree.meta.get("val")
            if isinstance(value, Tensor):
                if tree not in self.new_values:
                    raise NeedsFunctionalization(f"{tree} has no new value")
                if tree not in tensors:
                    tensors.append(tree)
                return tensors.index(tree), self._tensor_key(_value(self.new_values[tree]))
            return value.node.expr if isinstance(value, _SYMBOLIC) else (type(value), value)
        if isinstance(tree, (list, tuple)):
            return tuple([self._key(a, tensors) for a in tree])
        if isinstance(tree, dict):
            return tuple([(k, self._key(a, tensors)) for k, a in tree.items()])
        return type(tree), repr(tree) if isinstance(tree, (float, slice)) else tree

    def _tensor_key(self, tensor: Tensor) -> Any:
        key = self.keys.get(id(tensor))
        if key is None:
            key = self.keys[id(tensor)] = layout_key(tensor)
        return key

    # Aliases. Views become copies, so a write is only possible to a tensor that has no views.

    def _name(self, node: Node, root: Any, is_view: bool = False) -> None:
        """Note that `node` is the tensor `root`, or a view of it."""
        self.roots[node] = root
        self.names.setdefault(root, []).append(node)
        if is_view:
            self.viewed.add(root)

    def _name_results(self, node: Node, template: Template, tensors: list[Node]) -> None:
        outputs = template.outputs
        if isinstance(outputs, Ref):
            self._name(node, *self._origin(node, outputs, template, tensors))
        elif isinstance(outputs, (list, tuple)):
            for i, ref in enumerate(outputs):
                if isinstance(ref, Ref):
                    root, _ = self._origin(node, ref, template, tensors)
                    self.item_roots[node, i] = root
                    self.viewed.add(root)

    def _origin(
        self, node: Node, ref: Ref, template: Template, tensors: list[Node]
    ) -> tuple[Any, bool]:
        """(root, whether it is only a view of it) of a result of `template`."""
        for i, written in template.rebound.items():
            if written == ref:
                return self.roots[tensors[i]], False
        base = template.roots.get(ref, ref)
        if base.step < 0:
            assert base.index is not None
            return self.roots[tensors[base.index]], ref != base
        return node, False

    def _rebind(self, node: Node, template: Template, tensors: list[Node], refs: Any) -> None:
        """Writes to inputs: all names of the tensor mean the new value from now on."""
        for i, ref in template.rebound.items():
            root = self.roots[tensors[i]]
            if root in self.viewed:
                raise NeedsFunctionalization(f"{node} writes to an input or to a tensor with views")
            for name in self.names[root]:
                self.new_values[name] = refs[ref]


class _Item:
    """One of several results of a call; its getitem node is made when it is first read."""

    def __init__(self, splicer: Splicer, source: Node, index: int, value: Any, meta: Any) -> None:
        self.splicer, self.source, self.index = splicer, source, index
        self.value, self.meta = value, meta
        self.made: Node | None = None

    def node(self) -> Node:
        if self.made is None:
            self.made = self.splicer.graph.call_function(
                operator.getitem, (self.source, self.index)
            )
            self.made.meta = {**self.meta, "val": self.value}
        return self.made


def _returns_tensors(node: Node, target: OpOverload) -> bool:
    return bool(schema_of(target).returns) and not isinstance(node.meta.get("val"), _SYMBOLIC)


def _node(new: Any) -> Any:
    return new.node() if isinstance(new, _Item) else new


def _value(new: Any) -> Any:
    return new.value if isinstance(new, _Item) else new.meta["val"]


def _inherited(node: Node) -> dict[str, Any]:
    """Metadata of `node` for the nodes made from it; they tell that they come from it."""
    meta = {k: v for k, v in node.meta.items() if k not in _NOT_INHERITED}
    source = NodeSource(None, "to_edge", NodeSourceAction.CREATE)
    source.node_info = NodeSource.NodeInfo(node.name, str(node.target), id(node.graph))
    source.from_node = node.meta.get("from_node", [])
    meta["from_node"] = [source]
    return meta
