"""The graph of the incremental program, made node by node while the original is shown to be causal.

Symbols: T tokens are given, the first `start` of them were seen before, and the N = T - start new
ones are computed. Every value with a dim for tokens has up to two versions in the new graph:

  rows  entries start..T along it, computed from the rows of its operands
  full  entries 0..T: taken from a cache, or a view of a full version

A query's rows meet the full keys and values. What depends on T alone is a slice of a table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.proxy import TraceError

from executorch.exir.graph.graph_edit import layout_key, provenance, value_of
from executorch.exir.graph.number_nodes import append_number
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import LengthValues, token_dims
from executorch.exir.incremental.values import FIXED, Kind, Value, arguments
from executorch.exir.torch_internals import enable_python_dispatcher

aten = torch.ops.aten

ROWS, FULL, NOW = "rows", "full", "now"
_SIZES = {aten.sym_size.int, aten.sym_numel.default}


class Rewriter:
    """Holds what the rules (rules.py) read and write.

    values[old]         what is known of an old node, or a list of that for a list
    new[version, old]   what it became: a node, or a list of nodes
    caches              placeholders added for keys and values, in order, with their nodes
    """

    def __init__(
        self,
        old: Graph,
        tokens: Node,
        symbol: sympy.Symbol,
        lengths: LengthValues,
        fake_mode: Any,
        cache_dtype: torch.dtype,
    ) -> None:
        self.old = old
        self.tokens = tokens
        self.symbol = symbol
        self.lengths = lengths
        self.maximum = lengths.maximum
        self.fake_mode = fake_mode
        self.cache_dtype = cache_dtype
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.new: dict[tuple[str, Node], Any] = {}
        self.numbers: dict[tuple[str, sympy.Expr], Node] = {}
        self.tables: dict[Node, Node] = {}
        self.parts_of_tables: dict[tuple[Node, tuple[tuple[int, str], ...]], Node] = {}
        # Masks of the fused operator that hide later tokens, with the rank of its operands.
        self.causal_masks: set[tuple[Node, int]] = set()
        # Softmaxes over keys of which masks that depend on tokens may hide all, with their scores.
        self.masked_by_tokens: list[tuple[Node, Value]] = []
        # Inputs that nothing is kept of where they are other integers than 0 and 1.
        self.flags: set[Node] = set()
        self.caches: list[tuple[Node, Node, Node]] = []  # (buffer, its new value, what is kept)
        self.added: list[tuple[Node, Tensor, bool]] = []  # (placeholder, tensor, is it written)
        self.first_input: Node | None = None  # constants are placed before it
        self.meta: dict[str, Any] = {}
        self.computed: dict[Any, Any] = {}  # fake values: the calls of all layers are alike
        # Set by the program's prologue.
        self.start: Node
        self.end: Node  # T
        self.count: Node  # N
        self.rows_symbol: sympy.Expr

    # Making nodes.

    def call(self, target: Any, *args: Any, value: Any = None, **kwargs: Any) -> Node:
        node = self.graph.call_function(target, args, kwargs)
        node.meta = dict(self.meta)
        node.meta["val"] = self.compute(target, args, kwargs) if value is None else value
        return node

    def compute(self, target: Any, args: Any, kwargs: Any) -> Any:
        fake_args, fake_kwargs = value_of(tuple(args)), value_of(dict(kwargs))
        key = (target, _key(fake_args), _key(fake_kwargs))
        if key not in self.computed:
            with self.fake_mode, enable_python_dispatcher(), torch.no_grad():
                self.computed[key] = target(*fake_args, **fake_kwargs)
        return self.computed[key]

    @contextmanager
    def source(self, node: Node) -> Iterator[None]:
        """Nodes made inside come from where `node` does."""
        before, self.meta = self.meta, provenance(node)
        yield
        self.meta = before

    def constant(self, name: str, tensor: Tensor, is_written: bool = False) -> Node:
        """A new buffer of the program."""
        assert self.first_input is not None
        with self.graph.inserting_before(self.first_input):
            node = self.graph.placeholder(f"b_incremental_{name}")
        node.meta["val"] = self.fake_mode.from_tensor(tensor, static_shapes=True)
        self.added.append((node, tensor, is_written))
        return node

    # Sizes.

    def number(self, value: Any, version: str) -> Any:
        """A size of the original in the new graph: of N tokens for rows, of T otherwise."""
        if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return value
        expression = value.node.expr
        base = self.count if version == ROWS else self.end
        if expression == self.symbol:
            return base
        key = (version if version == ROWS else FULL, expression)
        if key not in self.numbers:
            self.numbers[key] = self._make_number(expression, base)
        return self.numbers[key]

    def _make_number(self, expression: sympy.Expr, base: Node) -> Any:
        if not expression.free_symbols <= {self.symbol}:
            raise NotImplementedError(f"a size {expression}, which depends on data")
        try:
            return append_number(self.graph, expression, {self.symbol: base}, self.meta)
        except (TraceError, TypeError) as error:  # some functions look at a number's value
            raise NotImplementedError(f"a number {expression}, which cannot be traced") from error

    def sizes(self, node: Node, value: Value, version: str) -> list[Any]:
        """The sizes of the new version of a tensor."""
        col = value.col
        return [
            self.number(n, FULL if d == col else version)
            for d, n in enumerate(node.meta["val"].shape)
        ]

    # Versions of old nodes.

    def rows(self, old: Node) -> Any:
        return self.new[ROWS, old]

    def full(self, old: Node) -> Any:
        """All T entries along the token dim of a value with rows."""
        key = (FULL, old)
        if key not in self.new:
            source = self._narrowest(old)
            if source is old:
                self.new[key] = self._cached(old)
            else:
                from executorch.exir.incremental.rules import apply

                chain = [old]
                while chain[-1] is not source:
                    chain.append(self._only_source(chain[-1]))  # type: ignore[arg-type]
                self.full(source)
                for node in reversed(chain[:-1]):
                    if (FULL, node) not in self.new:
                        with self.source(node):
                            self.new[FULL, node] = apply(self, node, FULL)
        return self.new[key]

    def _narrowest(self, old: Node) -> Node:
        """The value to keep so that `old` can be made of it: one with few elements for each token,
        which lie together, and of those the last."""

        def cost(node: Node) -> tuple[int, bool]:
            value, fake = self.values[node], node.meta["val"]
            apart = isinstance(fake, Tensor) and value.row == fake.dim() - 1
            return self._row_elements(node), apart

        best, at = old, old
        while (source := self._only_source(at)) is not None:
            at = source
            if at.target is not operator.getitem and isinstance(self.values[at], list):
                continue
            if cost(at) < cost(best):
                best = at
        return best

    def before_moves(self, old: Node) -> Node:
        """The value whose elements `old` only moves, or some of them."""
        from executorch.exir.incremental.movement import MOVES

        best, at = old, old
        while at.target in MOVES or at.target is operator.getitem:
            source = self._only_source(at)
            if source is None:
                break
            at = source
            if not isinstance(self.values[at], list):
                best = at
        return best

    def _row_elements(self, node: Node) -> int:
        value = node.meta["val"]
        if isinstance(value, (list, tuple)):
            return sum(self._elements(v) for v in value)
        return self._elements(value)

    def _elements(self, value: Tensor) -> int:
        n = 1
        for size in value.shape:
            n *= size if isinstance(size, int) else 1
        return n

    def _only_source(self, old: Node) -> Node | None:
        """The one operand with rows that `old` is computed from row by row, and cheaply."""
        from executorch.exir.incremental.rules import can_repeat

        if old is self.tokens or old.op != "call_function" or not can_repeat(old):
            return None
        sources = [n for n in old.all_input_nodes if self._is(n, Kind.ROWS)]
        others = [n for n in old.all_input_nodes if self._is(n, Kind.SCORES, Kind.WEIGHTS)]
        return sources[0] if len(sources) == 1 and not others else None

    def _is(self, node: Node, *kinds: Kind) -> bool:
        value = self.values.get(node)
        if isinstance(value, list):
            return any(v.kind in kinds for v in value)
        return value is not None and value.kind in kinds

    def operand_value(self, old: Node, index: int) -> Value:
        """What is known of an argument; what is no tensor is fixed."""
        value = self.values.get(arguments(old)[index])
        return value if isinstance(value, Value) else FIXED

    def _cached(self, old: Node) -> Node:
        """Write the rows into a buffer and read all from it."""
        if old is self.tokens:
            return self.new[FULL, old]
        value, fake = self.values[old], old.meta["val"]
        if isinstance(value, list):
            raise NotCausalError(old, "a list of values would have to be kept")
        rows, dim = self.rows(old), value.row
        dtype = fake.dtype
        # float32 holds numbers of 16 bits exactly; these keep their type, in half of the memory.
        is_held = self.cache_dtype == torch.float32 and dtype in (torch.float16, torch.bfloat16)
        if dtype.is_floating_point and not is_held:
            dtype = self.cache_dtype
        with self.source(old):
            if dtype == fake.dtype:
                return self._kept(old, rows, dim)
            if dtype != torch.int8:
                rows = self.call(aten._to_copy.default, rows, dtype=dtype)
                kept = self._kept(old, rows, dim)
                return self.call(aten._to_copy.default, kept, dtype=fake.dtype)
            rows, scale = self._to_int8(rows, dim)
            kept = self.call(aten._to_copy.default, self._kept(old, rows, dim), dtype=fake.dtype)
            return self.call(aten.mul.Tensor, kept, self._kept(old, scale, dim))

    def _kept(self, old: Node, rows: Node, dim: int) -> Node:
        """All of a new cache, after `rows` were put into it, as far as there are tokens."""
        fake = rows.meta["val"]
        shape = [self.maximum if d == dim else n for d, n in enumerate(fake.shape)]
        name = f"cache_{len(self.caches)}"
        buffer = self.constant(name, torch.zeros(shape, dtype=fake.dtype), is_written=True)
        index = [None] * dim + [self.positions(ROWS)]
        value = buffer.meta["val"].clone()
        new = self.call(aten.index_put.default, buffer, index, rows, value=value)
        self.caches.append((buffer, new, old))
        return self.call(aten.slice.Tensor, new, dim, 0, self.end)

    def _to_int8(self, rows: Node, dim: int) -> tuple[Node, Node]:
        """Integers from -127 to 127 and their scales: one for a token's numbers along the last dim,
        which are those of a head where heads lie apart."""
        along = -1 if dim != rows.meta["val"].dim() - 1 else -2
        largest = self.call(aten.amax.default, self.call(aten.abs.default, rows), [along], True)
        scale = self.call(aten.mul.Scalar, largest, 1 / 127)
        scale = self.call(aten.clamp.default, scale, 1e-20)
        integers = self.call(aten.round.default, self.call(aten.div.Tensor, rows, scale))
        return self.call(aten._to_copy.default, integers, dtype=torch.int8), scale

    def positions(self, version: str) -> Node:
        """0..T, or start..T."""
        key = (f"positions {version}", self.tokens)
        if key not in self.new:
            first = self.start if version == ROWS else 0
            extent = (self.count if version == ROWS else self.end).meta["val"]
            with self.fake_mode:
                value = torch.empty(extent, dtype=torch.int64)
            self.new[key] = self.call(
                aten.arange.start_step, first, self.end, 1, dtype=torch.int64, value=value
            )
        return self.new[key]

    # What depends on the length.

    def table(self, old: Node, dims: dict[int, str]) -> Node:
        """A value of the length, at the entries that `dims` say: rows start..T, columns 0..T."""
        key = (old, tuple(sorted(dims.items())))
        if key not in self.parts_of_tables:
            self.parts_of_tables[key] = self._part_of_table(old, dims)
        return self.parts_of_tables[key]

    def _part_of_table(self, old: Node, dims: dict[int, str]) -> Node:
        self.lengths.prove([old])
        mask = self._two_valued_mask(old, dims)
        if mask is not None:
            return mask
        longest = self.lengths.longest(old)
        if longest.numel() and bool((longest == longest.flatten()[0]).all()):
            return self._filled(old, dims, longest.flatten()[0])
        at = {d: dims[d] for d in token_dims(old.meta["val"], self.symbol)}
        return self.entries(self._table(old), at)

    def entries(self, table: Node, dims: dict[int, str]) -> Node:
        """Entries start..T of a table along its dim of queries, 0..T along that of keys."""
        for dim, role in dims.items():
            first = self.start if role == "row" else 0
            table = self._slice(table, dim, first, self.count if first else self.end)
        return table

    def _filled(self, old: Node, dims: dict[int, str], number: Tensor) -> Node:
        """One number everywhere, which needs no table."""
        sizes = [
            self.number(n, ROWS if dims.get(d) == "row" else FULL)
            for d, n in enumerate(old.meta["val"].shape)
        ]
        return self.call(aten.full.default, sizes, number.item(), dtype=number.dtype)

    def cut_rows(self, of_all: Node, dim: int) -> Node:
        """Entries start..T of a value of all tokens."""
        return self._slice(of_all, dim, self.start, self.count)

    def _slice(self, node: Node, dim: int, first: Any, count: Node) -> Node:
        shape = list(node.meta["val"].shape)
        shape[dim] = count.meta["val"]
        with self.fake_mode:
            value = torch.empty(shape, dtype=node.meta["val"].dtype)
        return self.call(aten.slice.Tensor, node, dim, first, self.end, value=value)

    def _table(self, old: Node) -> Node:
        if old not in self.tables:
            longest = self.lengths.longest(old).detach()
            self.tables[old] = (
                self._parameter_with(old, longest)
                or self.equal_table(longest)
                or self.constant(f"table_{len(self.tables)}", longest.clone().contiguous())
            )
        return self.tables[old]

    def equal_table(self, longest: Tensor) -> Node | None:
        for node, tensor, is_written in self.added:
            same = tensor.dtype == longest.dtype and tensor.shape == longest.shape
            if same and not is_written and torch.equal(tensor, longest):
                return node
        return None

    def _parameter_with(self, old: Node, longest: Tensor) -> Node | None:
        """The parameter that a table of positions is the beginning of."""
        if old.target is not aten.embedding.default:
            return None
        weight = old.args[0]
        tensor = self.lengths.constant(weight)  # type: ignore[arg-type]
        if longest.dim() != 2 or tensor.shape[0] < longest.shape[0]:
            return None
        same = torch.equal(tensor[: longest.shape[0]], longest)
        return self.new[NOW, weight] if same else None  # type: ignore[index]

    def _two_valued_mask(self, old: Node, dims: dict[int, str]) -> Node | None:
        """A causal mask of two values, perhaps with a window, computed from positions instead of
        kept as a table."""
        at = {role: d for d, role in dims.items() if d in token_dims(old.meta["val"], self.symbol)}
        longest = self.lengths.longest(old)
        if set(at) != {"row", "col"} or longest.numel() != self.maximum**2 or self.maximum < 2:
            return None
        plane = longest.reshape(self.maximum, self.maximum)
        if at["row"] > at["col"]:
            return None
        window = window_of(plane)
        if window is None:
            return None
        key = (
            f"mask {longest.dim()} {window} {plane[0, 0].item()} {plane[0, -1].item()}",
            self.tokens,
        )
        if key not in self.new:
            self.new[key] = self.mask(at, longest, window, plane[0, 0], plane[0, -1])
        return self.new[key]

    def mask(
        self, at: dict[str, int], like: Tensor, window: int, seen: Tensor, unseen: Tensor
    ) -> Node:
        """`seen` where a key is among the `window` tokens up to the query, else `unseen`; of the
        rank and dtype of `like`, its dims of queries and keys at["row"] and at["col"]."""

        def along(role: str, version: str) -> Node:
            shape: list[Any] = [1] * like.dim()
            shape[at[role]] = self.count if version == ROWS else self.end
            return self.call(aten.view.default, self.positions(version), shape)

        row, col = along("row", ROWS), along("col", FULL)
        mask = self.call(aten.le.Tensor, col, row)
        if window < self.maximum:
            first = self.call(aten.sub.Tensor, row, window)
            mask = self.call(aten.logical_and.default, mask, self.call(aten.gt.Tensor, col, first))
        if like.dtype == torch.bool:
            return mask if bool(seen) else self.call(aten.logical_not.default, mask)
        pair = [
            self.call(aten.full.default, [], v.item(), dtype=like.dtype) for v in (seen, unseen)
        ]
        return self.call(aten.where.self, mask, *pair)

    def now(self, old: Node) -> Any:
        """A value of the length, computed for the T of the call; or one that depends on nothing."""
        if old.target in _SIZES and old.meta["val"].node.expr.free_symbols <= {self.symbol}:
            return self.number(old.meta["val"], FULL)
        key = (NOW, old)
        if key not in self.new:
            pending = [old]
            while pending:
                at = pending[-1]
                missing = [
                    n
                    for n in at.all_input_nodes
                    if isinstance(n.meta.get("val"), (Tensor, list, tuple))
                    and (NOW, n) not in self.new
                ]
                if missing:
                    pending += missing
                    continue
                pending.pop()
                if (NOW, at) not in self.new:
                    with self.source(at):
                        self.new[NOW, at] = self.copy(at, lambda n: self.new[NOW, n])
        return self.new[key]

    def copy(self, old: Node, tensor: Callable[[Node], Any], version: str = NOW) -> Any:
        """The same call on other operands; lists become lists of nodes."""

        def operand(n: Node) -> Any:
            value = n.meta.get("val")
            if isinstance(value, (Tensor, list, tuple)):
                return tensor(n)
            return self.number(value, version)

        args = map_arg_lists(old.args, operand)
        kwargs = map_arg_lists(old.kwargs, operand)
        if old.target is operator.getitem:
            return args[0][args[1]]
        node = self.call(old.target, *args, **kwargs)
        value = node.meta["val"]
        if not isinstance(value, (list, tuple)):
            return node
        return [
            self.call(operator.getitem, node, i, value=v) if isinstance(v, Tensor) else None
            for i, v in enumerate(value)
        ]


def _key(tree: Any) -> Any:
    """Hashable, and equal for arguments of which a call makes values of equal shapes and dtypes."""
    if isinstance(tree, Tensor):
        return layout_key(tree)
    if isinstance(tree, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return tree.node.expr
    if isinstance(tree, (list, tuple)):
        return tuple([_key(each) for each in tree])
    if isinstance(tree, dict):
        return tuple([(name, _key(each)) for name, each in tree.items()])
    return repr(tree)


def window_of(plane: Tensor) -> int | None:
    """How many tokens each attends to, itself included, if a mask has one value for those and
    another for all others."""
    n = plane.shape[0]
    seen = plane == plane[0, 0]
    window = int(seen[-1].sum())
    band = torch.ones(n, n, dtype=torch.bool).tril().triu(1 - window)
    same = torch.equal(torch.where(band, plane[0, 0], plane[0, -1]), plane)
    return window if same and window > 0 and plane[0, 0] != plane[0, -1] else None


def map_arg_lists(args: Any, f: Callable[[Node], Any]) -> Any:
    """map_arg for functions that may give lists."""
    if isinstance(args, Node):
        return f(args)
    if isinstance(args, (list, tuple)):
        return type(args)(map_arg_lists(a, f) for a in args)
    if isinstance(args, dict):
        return {k: map_arg_lists(a, f) for k, a in args.items()}
    return args
