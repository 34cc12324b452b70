"""Operators that memory bounds, in every storage type: what is read once and written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from _cases import Case
from _operators import Call
from torch import Tensor
from torch.nn import functional as F

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
F32, BOOL, I32, I64 = torch.float32, torch.bool, torch.int32, torch.int64
SHORT = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.bool: "bool",
    torch.int32: "i32",
    torch.int64: "i64",
}

LARGE = (4096, 4096)  # beyond the caches
MEDIUM = (512, 768)  # the activations of a transformer
IMAGE = {LARGE: (1, 64, 512, 512), MEDIUM: (1, 64, 64, 96)}
HEADS = {LARGE: (16, 512, 16, 128), MEDIUM: (4, 128, 12, 64)}


def each(name: str, f: Callable[..., Tensor], *operands: Any, **options: Any) -> Iterator[Case]:
    """The function on the sizes of both scales. An operand is a function of the scale that gives
    sizes, or a pair of that and a type (none: each of `dtypes` in turn)."""
    dtypes = options.pop("dtypes", FLOATS)
    moved = options.pop("moved", None)  # elements, as a function of the scale
    for scale in (LARGE, MEDIUM):
        for dtype in dtypes:
            pairs = [x if isinstance(x, tuple) else (x, None) for x in operands]
            sizes = tuple(size(scale) for size, _ in pairs)
            types = tuple(t or dtype for _, t in pairs)
            shape = " ".join("x".join(map(str, s)) for s in sizes) or "x".join(map(str, scale))
            title = f"{name} {SHORT[dtype]} {shape}"
            yield Case(
                title,
                title.replace(" ", "_").replace("/", "_"),
                lambda: Call(f),
                sizes,
                dtype=dtype,
                dtypes=types,
                plans_inputs=False,
                moved=moved(scale) * dtype.itemsize if moved else 0,
                **options,
            )


def whole(scale):
    return scale


def row(scale):
    return (scale[1],)


def column(scale):
    return (scale[0], 1)


def image(scale):
    return IMAGE[scale]


def channels(scale):
    return (IMAGE[scale][1], 1, 1)


def heads(scale):
    return HEADS[scale]


def count(scale):
    return scale[0] * scale[1]


def nhwc(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous()


def nchw(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2).contiguous()


# Functions of one matrix.
OF_ONE = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "clamp": lambda x: torch.clamp(x, -0.5, 0.5),
    "add 1": lambda x: x + 1.5,
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "softmax of columns": lambda x: F.softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "sum": lambda x: x.sum(-1),
    "sum of columns": lambda x: x.sum(0),
    "sum of all": lambda x: x.sum(),
    "mean": lambda x: x.mean(-1),
    "var": lambda x: x.var(-1),
    "var of columns": lambda x: x.var(0),
    "amax": lambda x: x.amax(-1),
    "amax of columns": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(-1),
    "argmax of columns": lambda x: x.argmax(0),
    "max": lambda x: x.max(-1)[1],
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum of columns": lambda x: x.cumsum(0),
    "transpose": lambda x: x.t().contiguous(),
    "flip": lambda x: x.flip(1),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "less": lambda x: x < 0.5,
}


def cases() -> Iterator[Case]:
    for name, f in OF_ONE.items():
        yield from each(name, f, whole)
    for name in ("log", "sqrt", "rsqrt"):
        yield from each(name, getattr(torch, name), whole, positive=True)
    for name, second in (("", whole), (" row", row), (" column", column)):
        yield from each(f"add{name}", torch.add, whole, second)
    yield from each("outer add", torch.add, row, column)
    yield from each("mul", torch.mul, whole, whole)
    yield from each("mul row", torch.mul, whole, row)
    yield from each("mul channels", torch.mul, image, channels)
    yield from each("div", torch.div, whole, whole, positive=True)
    yield from each("maximum", torch.maximum, whole, whole)
    yield from each("equal", torch.eq, whole, whole)
    yield from each("where", torch.where, (whole, BOOL), whole, whole)
    yield from each("where row", lambda c, x: torch.where(c, x, 0.0), (row, BOOL), whole)
    yield from each("masked_fill", lambda x, c: x.masked_fill(c, -1e4), whole, (whole, BOOL))
    yield from each("group_norm", lambda x: F.group_norm(x, 8), image)
    yield from each("batch_norm", lambda x, m, v: F.batch_norm(x, m, v), *batch(), positive=True)
    yield from each("sum of channels", lambda x: x.sum(1), image)
    yield from each("softmax of channels", lambda x: F.softmax(x, 1), image)
    yield from each("mean of planes", lambda x: x.mean((2, 3)), image)
    yield from each("heads first", lambda x: x.permute(0, 2, 1, 3).contiguous(), heads)
    yield from each("to NHWC", nhwc, image)
    yield from each("to NCHW", nchw, image)
    yield from each("cat", lambda x, y: torch.cat((x, y), 1), whole, whole)
    yield from each("cat rows", lambda x, y: torch.cat((x, y), 0), whole, whole)
    yield from each("stack last", lambda x, y: torch.stack((x, y), -1), whole, whole)
    yield from each(
        "split", lambda x: torch.split_copy(x, 256, 1)[0], whole, moved=lambda s: 2 * count(s)
    )
    yield from each("expand", lambda x: x.expand(4096, -1).clone(), row)
    yield from each(
        "slice", lambda x: x[:, : x.shape[1] // 2].clone(), whole, moved=lambda s: count(s)
    )
    yield from each("step 2", lambda x: x[:, ::2].clone(), whole)
    yield from each("full", lambda: torch.full(LARGE, 1.5), dtypes=(F32,))
    yield from lookups()
    yield from integers()


def batch():
    return image, lambda s: (IMAGE[s][1],), lambda s: (IMAGE[s][1],)


def lookups() -> Iterator[Case]:
    def twice(scale):
        return 2 * count(scale)

    def places(scale):
        return (scale[0],)

    table, index = whole, (places, I64)
    look = {"high": 512, "moved": twice}
    yield from each("embedding", F.embedding, index, table, **look)
    yield from each("index_select", lambda x, i: x.index_select(0, i), table, index, **look)
    yield from each("index_select columns", lambda x, i: x.index_select(1, i), whole, index, **look)
    yield from each("index", lambda x, i: x[i], table, index, **look)
    yield from each("gather", lambda x, i: x.gather(1, i), whole, (whole, I64), high=512)


def integers() -> Iterator[Case]:
    for to in (torch.float16, torch.bfloat16, I64, BOOL):
        yield from each(f"to {SHORT[to]}", lambda x, to=to: x.to(to), whole, dtypes=(F32,))
    for dtype in (torch.float16, torch.bfloat16, BOOL, I32, I64):
        yield from each("to f32", lambda x: x.to(F32), whole, dtypes=(dtype,))
    yield from each("to i64", lambda x: x.to(I64), whole, dtypes=(I32, BOOL))
    yield from each("to i32", lambda x: x.to(I32), whole, dtypes=(I64,))
    ints = {"dtypes": (I64, I32)}
    yield from each("add", torch.add, whole, whole, **ints)
    yield from each("mul 3", lambda x: x * 3, whole, **ints)
    yield from each("less", lambda x: x < 100, whole, **ints)
    yield from each("equal", torch.eq, whole, whole, **ints)
    yield from each("outer less", torch.lt, row, column, **ints)
    yield from each("where", torch.where, (whole, BOOL), whole, whole, **ints)
    yield from each("sum", lambda x: x.sum(-1), whole, **ints)
    yield from each("argmax", lambda x: x.argmax(-1), whole, **ints)
    yield from each("cumsum", lambda x: x.cumsum(-1), whole, dtypes=(I64,))
    logic = {"dtypes": (BOOL,)}
    yield from each("and", torch.logical_and, whole, whole, **logic)
    yield from each("bits and", torch.bitwise_and, whole, whole, **logic)
    yield from each("not", torch.logical_not, whole, **logic)
    yield from each("any", lambda x: x.any(-1), whole, **logic)
    yield from each("any of columns", lambda x: x.any(0), whole, **logic)
    yield from each("sum", lambda x: x.sum(-1), whole, **logic)
    yield from each("cumsum", lambda x: x.cumsum(-1), whole, **logic)
    yield from each("transpose", lambda x: x.t().contiguous(), whole, dtypes=(BOOL, I64))


def small() -> Iterator[Case]:
    """What a call costs apart from its elements."""
    functions = {
        "add": (torch.add, 2),
        "gelu": (F.gelu, 1),
        "softmax": (lambda x: F.softmax(x, -1), 1),
        "sum": (lambda x: x.sum(-1), 1),
        "less": (lambda x: x < 0.5, 1),
        "cat": (lambda x, y: torch.cat((x, y), 0), 2),
        "reversed": (lambda x: x.flip(0), 1),
    }
    for name, (f, n) in functions.items():
        for size in (1, 16, 256, 4096, 16384, 65536):
            title = f"{name} of {size}"
            yield Case(
                title,
                title.replace(" ", "_"),
                lambda f=f: Call(f),
                ((size,),) * n,
                plans_inputs=False,
            )


STREAMS = (*cases(), *small())
