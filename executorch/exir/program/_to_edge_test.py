"""Edge programs compute what eager PyTorch computes: exactly or, where the decomposition sums in
another order, to the tolerances that torch.testing has for the dtype."""

import copy
import hashlib

import pytest
import sympy
import torch
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.graph.dynamic_sizes import watch_sizes
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.program import _decompose
from executorch.runtime import Runtime


class Residual(nn.Module):
    """Writes in place, as convolutional networks do."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.relu = nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.linear = nn.Linear(8, 5)

    def forward(self, x):
        x = self.relu(self.norm(self.first(x)))
        y = self.second(x)
        y += x
        y = self.relu(y)
        return self.linear(F.adaptive_avg_pool2d(F.max_pool2d(y, 2), 1).flatten(1))


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("keys", torch.zeros(4, 3))

    def forward(self, x, i):
        self.count += 1
        self.keys[i] = x
        return self.keys.sum() + self.count.sum()


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: (x - 3).relu(), (x,))


class Map(nn.Module):
    def forward(self, xs, y):
        from torch._higher_order_ops.map import map as map_over

        return map_over(lambda x, y: x * 2 + y.sum(), xs, y)


class Scan(nn.Module):
    def forward(self, xs):
        from torch._higher_order_ops.scan import scan

        return scan(lambda c, x: (c + x, c * x), torch.zeros(3), xs)


class Integers(nn.Module):
    def forward(self, x, y):
        positions = torch.arange(x.shape[0])
        return (x // 2, x % 3, x & y, (x * y + 3).clamp(-5, 9), x.sum(), x.float().mean()) + (
            positions * x[:, 0],
            x / 2,
            torch.where(x > y, x, -1),
            x.cumsum(0),
            x.argmax(1),
        )


class Sizes(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return (x.reshape(n * 2, -1), n, torch.full((n,), 2.0) * n, x[:, -1], x.view(-1)) + (
            F.pad(x, (0, 1)),
            torch.cat([x, x], 1),
            x * n,
            x[:n],
        )


class Views(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 0] = 0
        y.mul_(2)
        z = y.view(-1)
        z.add_(1)
        return y, z


class Chain(nn.Module):
    """Several names of one tensor, all of which see the writes."""

    def forward(self, x):
        y = x + 1
        z = y.add_(x)
        w = z.mul_(2)
        return y, z * w, w.relu_()


class DataDependent(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x)
        return found, found.shape[0] + 1


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.conv(x.to(memory_format=torch.channels_last)).relu().contiguous()


class Mixture(nn.Module):
    def forward(self, x, y):
        return (
            (x.std(), x.var(1), F.gelu(x), F.group_norm(x, 2), torch.einsum("bij,bkj->bik", x, x))
            + (F.interpolate(x[:, :, None], scale_factor=2), x.topk(2), x.split(1, 1), x.flip(1))
            + (x.unbind(1)[0], torch.linalg.vector_norm(x), F.hardswish(x), x.roll(1, 2), x.mT)
            + (x.masked_fill(x > 1, 1), F.layer_norm(x, (5,)), x.tril(), x**0.5, 1 / x, y.bool())
            + (x.repeat(2, 1, 1), F.one_hot(y, 4), F.log_softmax(x, 1), x.addcmul(x, x), x.amax())
            + (x.double(), x.fmod(2), torch.maximum(x, y[0]), x.diagonal(0, 1, 2), x.max(1))
            + (torch.zeros_like(x), x.new_ones(3), y.to(x.dtype), x + y[0], torch.tensor([1, 2]))
        )


def r(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def i(low, high, *shape):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(sum(shape)))


N = Dim("n", min=2, max=8)
# name -> model, example inputs, dynamic shapes, inputs to compare on
MODELS = {
    "residual": (Residual, (r(2, 3, 8, 8),), None, [(r(2, 3, 8, 8),)]),
    "cache": (Cache, (r(3), torch.tensor([1])), None, [(r(3), torch.tensor([2]))]),
    "cond": (Branches, (r(3),), None, [(r(3).abs(),), (-r(3).abs(),)]),
    "map": (Map, (r(4, 3), r(2)), None, [(r(4, 3), r(2))]),
    "scan": (Scan, (r(4, 3),), None, [(r(4, 3),)]),
    "attention": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
        (r(2, 6, 16),),
        ({1: Dim("t", max=32)},),
        [(r(2, n, 16),) for n in (3, 6, 32)],
    ),
    "lstm": (lambda: nn.LSTM(5, 7, 2, batch_first=True), (r(2, 6, 5),), None, [(r(2, 6, 5),)]),
    "gru": (
        lambda: nn.Sequential(nn.Embedding(10, 4), nn.GRU(4, 6, batch_first=True)),
        (i(0, 10, 2, 5),),
        None,
        [(i(0, 10, 2, 5),)],
    ),
    "integers": (
        Integers,
        (i(-9, 9, 4, 3), i(1, 9, 4, 3)),
        ({0: N}, {0: N}),
        [(i(-9, 9, n, 3), i(1, 9, n, 3)) for n in (2, 5, 8)],
    ),
    "sizes": (Sizes, (r(4, 6),), ({0: N},), [(r(n, 6),) for n in (2, 4, 7)]),
    "views": (Views, (r(2, 3),), None, [(r(2, 3),)]),
    "chain": (Chain, (r(2, 3),), None, [(r(2, 3),)]),
    "data dependent": (DataDependent, (i(0, 2, 5),), None, [(i(0, 2, 5),)]),
    "channels last": (ChannelsLast, (r(2, 3, 8, 8),), None, [(r(2, 3, 8, 8),)]),
    "mixture": (
        Mixture,
        (r(2, 4, 5), i(0, 4, 2)),
        None,
        [(r(2, 4, 5).abs() + 0.1, i(1, 4, 2))],
    ),
}


def exported(name):
    make, args, shapes, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        return model, export(model, args, dynamic_shapes=shapes), inputs


@pytest.mark.parametrize("name", MODELS)
def test_edge_program_computes_what_the_model_computes(name):
    model, program, inputs = exported(name)
    before = str(program.graph)
    edge = to_edge(program).exported_program()
    assert str(program.graph) == before
    module, model = edge.module(), copy.deepcopy(model)
    for args in inputs:
        with torch.no_grad():
            got, want = pytree.tree_leaves(module(*args)), pytree.tree_leaves(model(*args))
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, equal_nan=True)


def test_sizes_that_are_truncated_products_are_traced():
    model = nn.Upsample(scale_factor=1.5, mode="bicubic")
    shapes = ({2: N, 3: Dim("m", min=2, max=8)},)
    edge = to_edge(export(model, (r(1, 2, 4, 6),), dynamic_shapes=shapes))
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    for size in ((2, 3), (4, 6), (7, 8)):
        x = r(1, 2, *size)
        torch.testing.assert_close(method.execute([x])[0], model(x), rtol=1e-4, atol=1e-5)


class Slices(nn.Module):
    """Bounds are data; nothing tells whether they are negative or beyond the end."""

    def forward(self, x, bounds):
        first, last = bounds.tolist()
        full = x[x[:, 0] > 0]
        return x[first:last] * 2, x[:, last:].sum(), x.select(0, first), full[: full.shape[0] // 2]


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_bounds_of_slices_may_be_data(times):
    program = export(Slices(), (r(6, 3), torch.tensor([1, 4])))
    for _ in range(times):
        edge = to_edge(program)
        program = edge.exported_program()
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    for bounds in ([1, 4], [0, 6], [-2, -1], [3, 3], [4, 2], [-6, 99]):
        for x in (r(6, 3), r(6, 3).abs(), -r(6, 3).abs()):
            args = x, torch.tensor(bounds)
            torch.testing.assert_close(method.execute(args), list(Slices()(*args)))


@pytest.mark.parametrize("model", [nn.Linear(3, 2), nn.LSTM(3, 4)], ids=["linear", "lstm"])
def test_copies_of_programs_whose_input_has_a_name_of_python_become_programs(model):
    program = copy.deepcopy(export(model.eval(), (r(2, 3),)))
    edge = to_edge(program)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    want = pytree.tree_leaves(model(r(2, 3)))
    for a, b in zip(method.execute([r(2, 3)]), want, strict=True):
        torch.testing.assert_close(a, b)


def test_mutated_buffers_keep_their_signature():
    _, program, _ = exported("cache")
    signature = to_edge(program).exported_program().graph_signature
    assert set(signature.buffers_to_mutate.values()) == {"count", "keys"}


def test_integer_arithmetic_stays_integer():
    class Model(nn.Module):
        def forward(self, x):
            return (x * 3 + 1) // 2 - x % 5

    program = to_edge(export(Model(), (torch.arange(4),))).exported_program()
    dtypes = {n.meta["val"].dtype for n in program.graph.nodes if n.op == "call_function"}
    assert dtypes == {torch.int64}


def test_no_node_is_left_without_provenance():
    _, program, _ = exported("residual")
    for node in to_edge(program).exported_program().graph.nodes:
        if node.op == "call_function":
            assert "stack_trace" in node.meta and "from_node" in node.meta, node


def test_dimension_that_the_model_fixes_is_named():
    _, program, _ = exported("sizes")
    with watch_sizes(ProgramView(program).dynamic_dims) as sizes:
        ((symbol, (_, size)),) = sizes.dynamic.items()
        sizes.check("nothing")
        size.node.shape_env.replacements[symbol] = sympy.Integer(4)
        with pytest.raises(RuntimeError, match="dimension 0 of input x was declared.*it fixes.*4"):
            sizes.check("it")


def test_preserved_operator_stays():
    config = EdgeCompileConfig(preserve_ops=[torch.ops.aten.linear.default])
    program = export(nn.Linear(2, 3), (r(1, 2),))
    edge = to_edge(program, compile_config=config).exported_program()
    names = [n.target.__name__ for n in edge.graph.nodes if n.op == "call_function"]
    assert names == ["aten.linear.default"]


def test_views_cannot_be_preserved():
    config = EdgeCompileConfig(preserve_ops=[torch.ops.aten.permute.default])
    with pytest.raises(RuntimeError, match="permute.*cannot be preserved"):
        to_edge(export(nn.Linear(2, 3), (r(1, 2),)), compile_config=config)


def test_deep_copy_is_independent():
    manager = to_edge(export(nn.ReLU(), (r(2),)))
    copied = copy.deepcopy(manager)
    (node,) = [n for n in copied.exported_program().graph.nodes if n.op == "call_function"]
    node.target = torch.ops.aten.sigmoid.default
    names = [
        n.target.__name__ for n in manager.exported_program().graph.nodes if n.op[:4] == "call"
    ]
    assert names == ["aten.relu.default"]


def test_transform_and_lower_without_partitioners():
    manager = to_edge_transform_and_lower(export(nn.ReLU(), (r(2),)), transform_passes=[])
    torch.testing.assert_close(manager.exported_program().module()(-r(2)), (-r(2)).relu())


def test_what_is_no_exported_program_is_refused():
    with pytest.raises(TypeError, match="method 'a'.*torch.export.export first"):
        to_edge({"a": nn.ReLU()})


def looks(program):
    """What each result is computed from, with dtypes, shapes and strides, whatever the order of
    calls. Texts of assertions name nodes of the export."""
    known = {}

    def look(node):
        if node not in known:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), look)
            if node.target is torch.ops.aten._assert_scalar.default:
                args = args[:1]
            values = pytree.tree_leaves(node.meta.get("val") if node.op != "output" else None)
            tensors = [
                (v.dtype, str(v.shape), str(v.stride()))
                for v in values
                if isinstance(v, torch.Tensor)
            ]
            text = f"{node.op} {node.target} {args} {kwargs} {tensors}"
            known[node] = hashlib.sha256(text.encode()).hexdigest()
        return known[node]

    return sorted(map(look, program.graph.nodes))


@pytest.mark.parametrize("name", MODELS)
def test_both_ways_of_decomposing_give_equal_graphs(name, monkeypatch):
    def refuse(*args):
        raise _decompose.NeedsFunctionalization("this test")

    _, program, _ = exported(name)
    with monkeypatch.context() as patched:
        # Others go the general way in any case: control flow, writes to inputs or through views.
        if name not in ("cache", "cond", "map", "scan", "views"):
            patched.setattr(torch.export.ExportedProgram, "run_decompositions", refuse)
        given = to_edge(program).exported_program()
    monkeypatch.setattr(_decompose, "_spliced", refuse)
    general = to_edge(program).exported_program()
    assert looks(given) == looks(general)


class Settings(nn.Module):
    """A method without tensors, as for what an application asks a program."""

    def forward(self, n: int):
        return 5, n, True


def test_methods_without_tensors_are_programs():
    edge = to_edge(export(Settings(), (3,)))
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method.execute([3]) == [5, 3, True]


class Padded(nn.Module):
    PADS = (((1, 2), "reflect"), ((2, 1), "replicate"), ((1, 2), "constant"))

    def forward(self, x):
        wrapped = F.pad(x, (1, 4, 2, 0), mode="circular")
        cropped = F.pad(x[None], (2, -1, -1, -1), mode="circular")
        return wrapped, cropped, *(F.pad(x, pad, mode=mode) for pad, mode in self.PADS)


class Angles(nn.Module):
    def forward(self, x):
        z = torch.complex(x, x.flip(0))
        exponential = torch.view_as_real(torch.exp(z[1]))
        angles = [torch.angle(v) for v in (z, x, x.half(), x.double(), x[:1].long())]
        return exponential, *angles


@pytest.mark.parametrize("model", [Padded(), Angles()])
@pytest.mark.parametrize("by_torch", [False, True])
def test_decompositions_of_our_own_agree_with_eager(model, by_torch, monkeypatch):
    def refuse(*args):
        raise _decompose.NeedsFunctionalization("this test")

    x = torch.tensor([[3.0, 1.0, -2.0, 2.5], [0.5, -1.0, 5.0, float("nan")]]).repeat(2, 2, 1)
    if by_torch:
        monkeypatch.setattr(_decompose, "_spliced", refuse)
    edge = to_edge(export(model, (x,), dynamic_shapes=({1: Dim("rows", min=4, max=9)},)))
    names = {str(n.target) for n in edge.exported_program().graph.nodes}
    assert not any("scatter" in name for name in names)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    for given in (x, x[:, :1].repeat(1, 9, 1)):
        torch.testing.assert_close(method.execute([given]), list(model(given)), equal_nan=True)
