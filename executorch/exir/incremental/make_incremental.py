"""`make_incremental`: a language model that computes only the tokens it has not seen."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import DimDynamic

from executorch.exir.emit._emit_program import STATE_PREFIX
from executorch.exir.incremental.bounds import bounded, bounds_of_flags
from executorch.exir.incremental.composites import decompose_unknown
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.fully_masked import first_fully_masked
from executorch.exir.incremental.lengths import LengthValues
from executorch.exir.incremental.quantization import quantize_by_token
from executorch.exir.incremental.rewriter import FULL, NOW, ROWS, Rewriter
from executorch.exir.incremental.rules import apply, classify, is_elementwise
from executorch.exir.incremental.values import FIXED, Kind, Value
from executorch.exir.torch_internals import (
    ConstantSource,
    ValueRanges,
    detect_fake_mode,
    set_parts,
)

aten = torch.ops.aten

_END = 2**63 - 1
_INPUT_DTYPES = (torch.int32, torch.int64, torch.bool)
_CACHE_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int8)


def make_incremental(
    program: ExportedProgram,
    *,
    cache_dtype: torch.dtype = torch.float32,
    last_only: bool = False,
) -> ExportedProgram:
    """`program` with keys and values kept inside, as a new program; `program` stays as it is.

    `program` takes token ids, integers of shape [batch, T] or [T], T dynamic with a maximum, and
    computes each token's results from the tokens up to it. Further inputs may say more of each
    token, such as its position, or whether it is padding: integers or bools [batch or 1, T] or [T].
    The new program takes and returns the same. It compares the tokens with those of the call
    before, keeps what the common beginning gave, and computes the rest, at least one token: a loop
    that gives all tokens so far costs one token a step. Results are those of `program` within float
    rounding, whatever tokens follow on which. An activation that is quantized with one range for
    all tokens gets one for each token.

    cache_dtype  of kept keys and values: float32, float16, bfloat16, or int8 with a scale for each
                 head and token; where it is float32, values of 16 bits keep their own type
    last_only    where all positions are returned: return the last alone, in a dim of extent 1;
                 else what the others need is kept, too, and their results are computed again

    Raises NotCausalError, with node, file and line, where a token's results may depend on later
    tokens or the program is not understood; ValueError where there are no such token ids.
    """
    if cache_dtype not in _CACHE_DTYPES:
        names = ", ".join(str(t).removeprefix("torch.") for t in _CACHE_DTYPES)
        raise ValueError(f"cache_dtype: {cache_dtype}; expected one of {names}")
    program = quantize_by_token(program)
    program = decompose_unknown(program)
    return _Builder(program, cache_dtype, last_only).build()


class _Builder:
    def __init__(self, program: ExportedProgram, cache_dtype: torch.dtype, last_only: bool) -> None:
        self.program = program
        self.last_only = last_only
        self.inputs = _token_inputs(program)
        self.tokens = self.inputs[0]
        fake = self.tokens.meta["val"]
        self.extent: SymInt = fake.shape[-1]
        self.maximum = _maximum(program, self.tokens)
        fake_mode = detect_fake_mode([fake])
        assert fake_mode is not None and fake_mode.shape_env is not None
        lengths = LengthValues(self.extent.node.expr, self.maximum, self._tensor)
        self.rw = Rewriter(
            program.graph, self.tokens, self.extent.node.expr, lengths, fake_mode, cache_dtype
        )
        self.targets = {
            s.arg.name: s.target
            for s in program.graph_signature.input_specs
            if s.target is not None and hasattr(s.arg, "name")
        }

    def _tensor(self, node: Node) -> Tensor:
        target = self.targets[node.name]
        for where in (self.program.state_dict, self.program.constants):
            if target in where:
                return where[target].detach()
        raise KeyError(target)

    def build(self) -> ExportedProgram:
        rw = self.rw
        for node in rw.old.find_nodes(op="placeholder"):
            self._placeholder(node)
        self._prologue()
        for node in _needed(rw.old):
            if node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                raise NotCausalError(node, "control flow is not supported")
        results = [self._result(n) for n in rw.old.output_node().args[0]]  # type: ignore[union-attr]
        state = self._epilogue()
        return self._assemble(results, state)

    def _placeholder(self, node: Node) -> None:
        rw = self.rw
        new = rw.graph.placeholder(str(node.target))
        new.meta = dict(node.meta)
        if node in self.inputs:
            flags = None if node is self.tokens else bounds_of_flags(node)
            rw.values[node] = Value(Kind.ROWS, _token_dim(node), bounds=flags)
            rw.new[FULL, node] = new
            rw.first_input = rw.first_input or new
        else:
            rw.values[node] = FIXED
            rw.new[NOW, node] = new

    def _prologue(self) -> None:
        """How many of the tokens were seen, and the others."""
        rw, tokens = self.rw, self.rw.new[FULL, self.tokens]
        with rw.source(self.tokens):
            self.seen = [self._seen(n, i) for i, n in enumerate(self.inputs)]
            # How many of those the caches hold: none while a call is under way, so that what a call
            # that fails has kept does not count.
            self.kept = rw.constant("kept", torch.zeros(1, dtype=torch.int64), True)
            self.first = rw.constant("first", torch.zeros(1, dtype=torch.int64))
            places = rw.constant("places", torch.arange(self.maximum))
            dim = _token_dim(self.tokens)
            rw.end = rw.call(aten.sym_size.int, tokens, dim, value=self.extent)
            self.places = rw.call(aten.slice.Tensor, places, 0, 0, rw.end)
            with rw.fake_mode:
                one = torch.empty(1, dtype=torch.int64)
            # The last token counts as another one, whatever it is.
            self.last = rw.call(aten.slice.Tensor, self.places, 0, -1, _END, value=one)
            counted = self.kept
            for node, seen in zip(self.inputs, self.seen, strict=True):
                counted = rw.call(aten.minimum.default, counted, self._common(node, seen))
            none = rw.call(aten.full.default, [1], 0, dtype=torch.int64)
            self.begun = rw.call(aten.index_put.default, self.kept, [self.first], none)
            self.none = none
            extent = self._new_extent()
            rw.start = rw.call(
                aten._local_scalar_dense.default, counted, value=self.extent - extent
            )
            for node in self.inputs:
                fake = node.meta["val"]
                with rw.fake_mode:
                    value = torch.empty((*fake.shape[:-1], extent), dtype=fake.dtype)
                given, at = rw.new[FULL, node], _token_dim(node)
                new = rw.call(aten.slice.Tensor, given, at, rw.start, rw.end, value=value)
                rw.new[ROWS, node] = new
            first = rw.new[ROWS, self.tokens]
            rw.count = rw.call(aten.sym_size.int, first, dim, value=extent)

    def _seen(self, node: Node, index: int) -> Node:
        """The buffer for what an input was in the call before."""
        fake = node.meta["val"]
        before = torch.zeros(*fake.shape[:-1], self.maximum, dtype=fake.dtype)
        return self.rw.constant(f"seen_{index}" if index else "seen", before, True)

    def _common(self, node: Node, seen: Node) -> Node:
        """How many of its entries are those of the call before, int64 of rank 0."""
        rw, dim = self.rw, _token_dim(node)
        before = rw.call(aten.slice.Tensor, seen, dim, 0, rw.end)
        differs = rw.call(aten.ne.Tensor, rw.new[FULL, node], before)
        where = rw.call(aten.where.self, differs, self.places, self.last)
        return rw.call(aten.amin.default, where, list(range(dim + 1)))

    def _new_extent(self) -> SymInt:
        """A symbol for the number of new tokens, 1 to the maximum."""
        shape_env = self.rw.fake_mode.shape_env
        hint = self._hint()
        source = ConstantSource(f"__new_tokens_{self.tokens.name}")
        symbol = shape_env.create_symbol(
            hint,
            source=source,
            dynamic_dim=DimDynamic.DYNAMIC,
            constraint_dim=None,
            do_not_specialize_zero_one=True,
        )
        shape_env.constrain_symbol_range(symbol, 1, self.maximum)
        self.rw.rows_symbol = symbol
        return shape_env.create_symintnode(symbol, hint=hint, source=source)

    def _hint(self) -> int:
        """An example of that number which is no other size of the program, nor 1."""
        given = self.extent.node.hint or self.maximum
        taken = {
            n
            for node in self.rw.old.nodes
            if isinstance(node.meta.get("val"), Tensor)
            for n in node.meta["val"].shape
            if isinstance(n, int)
        }
        if given < 3:  # 1 would be taken for a constant, and the same number for the same size
            raise NotCausalError(
                self.tokens,
                f"the text that the program was exported with has {given} tokens; it has to have "
                "3, so that a part of it that is longer than 1 can be told from all of it",
            )
        return next((n for n in range(given - 1, 1, -1) if n not in taken), given - 1)

    def _call(self, node: Node) -> None:
        rw = self.rw
        try:
            value = classify(rw, node)
            if value is None:
                return
            rw.values[node] = bounded(rw, node, value)
            kinds = {v.kind for v in (value if isinstance(value, list) else [value])}
            with rw.source(node):
                if kinds == {Kind.LAST}:
                    self._make_last(node)
                elif kinds & {Kind.ROWS, Kind.SCORES, Kind.WEIGHTS}:
                    rw.new[ROWS, node] = apply(rw, node, ROWS)
        except NotImplementedError as error:
            raise NotCausalError(node, str(error)) from error

    def _make_last(self, node: Node) -> None:
        """What picks the last of the new tokens, or is computed from that."""
        rw = self.rw
        picks = [n for n in node.all_input_nodes if rw._is(n, Kind.ROWS)]
        version = ROWS if picks else NOW
        rw.new[NOW, node] = rw.copy(
            node, lambda n: rw.rows(n) if n in picks else rw.now(n), version
        )

    def _result(self, node: Any) -> Any:
        rw = self.rw
        if not isinstance(node, Node):
            return node
        value = rw.values[node]
        with rw.source(node):
            if value.kind in (Kind.SCORES, Kind.WEIGHTS):
                raise NotCausalError(node, "scores of pairs of tokens are returned")
            if value.kind is Kind.PADDED:
                raise NotCausalError(node, "tokens padded before the first are returned")
            if value.kind is Kind.LONGER:
                raise NotCausalError(node, "entries that look beyond the last token are returned")
            if value.kind is not Kind.ROWS:
                return rw.now(node)
            return self._last(rw.rows(node), value.row) if self.last_only else rw.full(node)

    def _last(self, rows: Node, dim: int) -> Node:
        """The last of the new tokens' rows. The product with weights that gives them, often that of
        the vocabulary, is computed for this token alone where nothing else reads it."""
        rw = self.rw
        calls: list[Node] = []  # from the result to the product
        at = rows
        while len(at.users) == len(calls[-1:]) and is_elementwise(at.target):
            if at.all_input_nodes != [at.args[0]]:
                break
            calls.append(at)
            (at,) = at.all_input_nodes
        if len(at.users) != len(calls[-1:]) or not _is_product_of_rows(at, dim):
            return rw.call(aten.slice.Tensor, rows, dim, -1, _END)
        source: Any = at.args[0]
        last = rw.call(aten.slice.Tensor, source, dim, -1, _END)
        for call in (at, *reversed(calls)):
            args = [last if a is source else a for a in call.args]
            source, last = call, rw.call(call.target, *args, **call.kwargs)
        return last

    def _epilogue(self) -> list[tuple[Node, Node]]:
        """(buffer, its next value) of all that is kept."""
        rw = self.rw
        positions = rw.positions(ROWS)
        seen = []
        for node, buffer in zip(self.inputs, self.seen, strict=True):
            index = [None] * _token_dim(node) + [positions]
            given, value = rw.new[ROWS, node], buffer.meta["val"].clone()
            new = rw.call(aten.index_put.default, buffer, index, given, value=value)
            seen.append((buffer, new))
        count = end = rw.call(aten.add.Scalar, self.last, 1)
        first = first_fully_masked(rw, end)
        if first is not None:
            count = rw.call(aten.minimum.default, end, first)
        spoilt = self._has_nan()
        if spoilt is not None:
            count = rw.call(aten.where.self, spoilt, self.none, count)
        if rw.flags:
            count = rw.call(aten.where.self, self._guard(), count, self.none)
        all_kept = rw.call(aten.index_put.default, self.begun, [self.first], count)
        kept = [(buffer, new) for buffer, new, _ in rw.caches]
        return [*kept, *seen, (self.kept, all_kept)]

    def _guard(self) -> Node:
        """Has all tokens computed where an input that the proof took for a mask is none. Returns
        whether all are, a bool of rank 0."""
        rw, holds = self.rw, None
        with rw.graph.inserting_before(rw.start):
            for node in self.inputs:
                if node not in rw.flags:
                    continue
                given = rw.new[FULL, node]
                ends = (rw.call(aten.ge.Scalar, given, 0), rw.call(aten.le.Scalar, given, 1))
                both = rw.call(aten.all.default, rw.call(aten.logical_and.default, *ends))
                holds = both if holds is None else rw.call(aten.logical_and.default, holds, both)
            assert holds is not None
            counted = rw.start.args[0]
            counted = rw.call(aten.where.self, holds, counted, self.none)
        rw.start.args = (counted,)
        return holds

    def _has_nan(self) -> Node | None:
        """Whether a NaN is among what was computed to be kept.

        A value that is not finite reaches earlier tokens, too: the weight zero that a mask gives it
        makes a NaN of it. What was kept of them would be wrong in a text without that token. The
        newest token attends to it as well, so that the NaN reaches all that is computed after it:
        it is enough to look at what nothing else is kept behind, the last layer's keys and values;
        before they are moved, so that whoever writes them may move them on the way.
        """
        rw = self.rw
        spoilt: Node | None = None
        last = _last_of([old for _, _, old in rw.caches])
        for old in dict.fromkeys(rw.before_moves(old) for old in last):
            with rw.source(old):
                nan = rw.call(aten.any.default, rw.call(aten.isnan.default, rw.rows(old)))
                if spoilt is not None:
                    nan = rw.call(aten.logical_or.default, spoilt, nan)
            spoilt = nan
        return spoilt

    def _assemble(self, results: list[Any], state: list[tuple[Node, Node]]) -> ExportedProgram:
        rw, old = self.rw, self.program
        names = {
            node: f"{STATE_PREFIX}{node.name.removeprefix('b_incremental_')}"
            for node, _, _ in rw.added
        }
        written = [new for _, new in state]
        output = rw.graph.output((*written, *results))
        output.meta["val"] = tuple(
            n.meta.get("val") if isinstance(n, Node) else n
            for n in output.args[0]  # type: ignore[union-attr]
        )
        rw.graph.eliminate_dead_code()
        rw.graph.lint()
        new = copy.copy(old)
        set_parts(new, graph_module=GraphModule(torch.nn.Module(), rw.graph))
        new.graph_module.meta.update(old.graph_module.meta)
        set_parts(
            new,
            state_dict={**old.state_dict, **{names[n]: t for n, t, _ in rw.added}},
            constants=dict(old.constants),
            range_constraints=dict(old.range_constraints),
        )
        new.range_constraints[rw.rows_symbol] = ValueRanges(1, self.maximum)
        set_parts(new, graph_signature=self._signature(results, state, names))
        new.validate()
        return new

    def _signature(
        self, results: list[Any], state: list[tuple[Node, Node]], names: dict[Node, str]
    ) -> ExportGraphSignature:
        signature = self.program.graph_signature
        added = [
            InputSpec(InputKind.BUFFER, TensorArgument(n.name), target=names[n], persistent=True)
            for n, _, _ in self.rw.added
        ]
        inputs = []
        for spec in signature.input_specs:
            if getattr(spec.arg, "name", None) == self.tokens.name:
                inputs += added
            inputs.append(spec)
        outputs = [
            OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(new.name), names[buffer])
            for buffer, new in state
        ]
        for spec, result in zip(signature.output_specs, results, strict=True):
            arg = TensorArgument(result.name) if isinstance(result, Node) else spec.arg
            outputs.append(OutputSpec(spec.kind, arg, spec.target))
        return ExportGraphSignature(inputs, outputs)


def _is_product_of_rows(node: Node, dim: int) -> bool:
    """Whether it multiplies each entry along `dim` by the same matrix."""
    if node.target not in (aten.linear.default, aten.matmul.default):
        return False
    shapes = [n.meta["val"].dim() for n in (node, *node.args[:2])]  # type: ignore[union-attr]
    return shapes[0] == shapes[1] and shapes[2] == 2 and dim < shapes[0] - 1


def _needed(graph: Graph) -> list[Node]:
    """What the results are computed from. Attention often returns its weights to a model that drops
    them: their mean over the heads, which nobody sees, is no reason to refuse."""
    needed = _before([graph.output_node()])
    return [n for n in graph.nodes if n in needed]


def _before(nodes: list[Node]) -> set[Node]:
    """What the nodes are computed from."""
    before: set[Node] = set()
    pending = [source for node in nodes for source in node.all_input_nodes]
    while pending:
        node = pending.pop()
        if node not in before:
            before.add(node)
            pending += node.all_input_nodes
    return before


def _last_of(nodes: list[Node]) -> list[Node]:
    """Those of the nodes, all of floats, that no other of them is computed from."""
    before = _before(nodes)
    found = [n for n in nodes if n not in before and n.meta["val"].dtype.is_floating_point]
    return list(dict.fromkeys(found))


def _token_inputs(program: ExportedProgram) -> list[Node]:
    """Its inputs, each of which says something of each token."""
    signature = program.graph_signature
    if any(s.kind is not OutputKind.USER_OUTPUT for s in signature.output_specs):
        raise ValueError("make_incremental: the program changes buffers or inputs: it has state")
    user = set(signature.user_inputs)
    found = [n for n in program.graph.find_nodes(op="placeholder") if n.name in user]
    if not found or not isinstance(found[0].meta.get("val"), Tensor):
        names = ", ".join(n.name for n in found) or "none"
        raise ValueError(f"make_incremental: an input of token ids is expected; found {names}")
    for node in found:
        _require_of_tokens(node, found[0].meta["val"])
    return found


def _token_dim(node: Node) -> int:
    """The dim of an input along which tokens lie: its last."""
    dim: int = node.meta["val"].dim()
    return dim - 1


def _require_of_tokens(node: Node, first: Tensor) -> None:
    fake = node.meta.get("val")
    if not isinstance(fake, Tensor):
        raise ValueError(f"make_incremental: the input {node.name} is {fake}, no tensor of tokens")
    is_ids = fake.dtype in _INPUT_DTYPES and fake.dim() in (1, 2)
    is_static = all(isinstance(n, int) for n in fake.shape[:-1])
    if not is_ids or not is_static or not isinstance(fake.shape[-1], SymInt):
        raise ValueError(
            f"make_incremental: {node.name} is {fake.dtype} of shape {list(fake.shape)}; token "
            "ids, and what else is said of each token, are integers or bools of shape [batch, T] "
            "or [T] with a static batch and a dynamic T"
        )
    if fake.shape[-1].node.expr != first.shape[-1].node.expr:
        raise ValueError(
            f"make_incremental: dim {_token_dim(node)} of {node.name} is {fake.shape[-1]}, not "
            f"{first.shape[-1]} as of the first input; give both the same torch.export.Dim"
        )


def _maximum(program: ExportedProgram, tokens: Node) -> int:
    expression, dim = tokens.meta["val"].shape[-1].node.expr, _token_dim(tokens)
    bounds = program.range_constraints.get(expression)
    if not expression.is_Symbol or bounds is None:
        raise ValueError(
            f"make_incremental: dim {dim} of {tokens.name} is {expression}; a dim of its own is "
            "needed"
        )
    upper = bounds.upper
    if not upper.is_Integer or int(upper) > 2**24:
        raise ValueError(
            f"make_incremental: dim {dim} of {tokens.name} has no maximum; export with "
            f'dynamic_shapes=({{{dim}: torch.export.Dim("tokens", max=1024)}},)'
        )
    return int(upper)
