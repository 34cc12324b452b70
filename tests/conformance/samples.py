"""Calls of core operators: those that PyTorch's own samples (OpInfo) end in, and ours (tests/ops).

OpInfo's samples call the public functions. They are run in eager under a mode that sees every
operator below autograd, and the calls of the operator in question are kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.ops import (  # noqa: F401  (they add their rows)
    samples_beyond_core,
    samples_of_gradients,
    samples_of_quantized,
    samples_of_shapes,
)
from tests.ops.oracle import call_of, functional_of, map_tensors, overload
from tests.ops.samples import SAMPLES, Maker

DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint16, torch.uint32, torch.uint64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128),
)

# Eager's own is right to nine digits; our samples are compared in float32, where that is enough.
INEXACT = {"aten::polygamma"}

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # tried where there are other integers

# OpInfos, beside those of the operator's own name, whose samples end in the operator.
SOURCES = {
    "_adaptive_avg_pool2d": ["nn.functional.adaptive_avg_pool2d"],
    "_adaptive_avg_pool3d": ["nn.functional.adaptive_avg_pool3d"],
    "_cdist_forward": ["cdist"],
    "_embedding_bag_forward_only": ["nn.functional.embedding_bag"],
    "_fft_c2c": ["fft.fft", "fft.ifft2", "fft.fftn"],
    "_fft_c2r": ["fft.irfft", "fft.irfft2", "fft.hfft"],
    "_fft_r2c": ["fft.rfft", "fft.rfftn", "fft.fft", "fft.ihfft"],
    "_log_softmax": ["log_softmax"],
    "_native_batch_norm_legit_no_training": ["nn.functional.batch_norm"],
    "_pdist_forward": ["nn.functional.pdist"],
    "_softmax": ["softmax"],
    "_to_copy": ["to", "float", "half", "bool", "int", "double", "long", "byte"],
    "adaptive_max_pool2d": ["nn.functional.adaptive_max_pool2d"],
    "adaptive_max_pool3d": ["nn.functional.adaptive_max_pool3d"],
    "alias_copy": ["alias_copy"],
    "any": ["any"],
    "arange": ["arange"],
    "as_strided_copy": ["as_strided", "as_strided_copy"],
    "avg_pool2d": ["nn.functional.avg_pool2d", "nn.functional.avg_pool1d"],
    "constant_pad_nd": ["nn.functional.pad", "constant_pad_nd"],
    "convolution": [
        *(f"nn.functional.conv{d}d" for d in (1, 2, 3)),
        *(f"nn.functional.conv_transpose{d}d" for d in (1, 2, 3)),
    ],
    "diagonal_copy": ["diagonal", "diagonal_copy"],
    "div": ["div", "true_divide", "floor_divide"],
    "expand_copy": ["expand", "broadcast_to"],
    "hardtanh": ["nn.functional.hardtanh", "nn.functional.relu6"],
    "index": ["__getitem__", "take_along_dim"],
    "index_put": ["index_put"],
    "masked_fill": ["masked_fill"],
    "max": ["max"],
    "max_pool2d_with_indices": ["nn.functional.max_pool2d", "max_pool2d_with_indices_backward"],
    "max_pool3d_with_indices": ["nn.functional.max_pool3d"],
    "min": ["min"],
    "native_group_norm": ["nn.functional.group_norm"],
    "native_layer_norm": ["nn.functional.layer_norm", "native_layer_norm"],
    "permute_copy": ["permute"],
    "pow": ["pow", "__rpow__"],
    "repeat_interleave": ["repeat_interleave"],
    "rsub": ["__rsub__", "rsub"],
    "select_copy": ["select", "__getitem__"],
    "slice_copy": ["slice", "narrow", "__getitem__"],
    "split_copy": ["split"],
    "split_with_sizes_copy": ["split_with_sizes"],
    "squeeze_copy": ["squeeze"],
    "t_copy": ["t"],
    "transpose_copy": ["transpose"],
    "unbind_copy": ["unbind"],
    "unfold_copy": ["unfold"],
    "unsqueeze_copy": ["unsqueeze"],
    "upsample_bilinear2d": ["nn.functional.interpolate", "nn.functional.upsample_bilinear"],
    "upsample_nearest2d": ["nn.functional.interpolate", "nn.functional.upsample_nearest"],
    "view_copy": ["view", "reshape", "view_copy"],
}

# A view, and the operator that copies in its place.
_COPIES = {
    torch.ops.aten.view.default: "view_copy",
    torch.ops.aten._unsafe_view.default: "view_copy",
    torch.ops.aten.expand.default: "expand_copy",
}


@dataclass
class Sample:
    """One call of a functional overload; `dtype` is the type whose row it counts in."""

    op: torch._ops.OpOverload
    args: list[Any]
    kwargs: dict[str, Any]
    dtype: torch.dtype

    @property
    def structure(self) -> str:
        def describe(t: torch.Tensor) -> str:
            return f"{t.dtype}{tuple(t.shape)}{t.stride()}"

        return repr(map_tensors(describe, (self.args, self.kwargs)))

    def tensors(self) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        map_tensors(found.append, (self.args, self.kwargs))
        return found

    def __str__(self) -> str:
        def describe(t: torch.Tensor) -> str:
            layout = "" if t.is_contiguous() else f" strides {t.stride()}"
            return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}{layout}"

        args, kwargs = map_tensors(describe, (self.args, self.kwargs))
        return f"{self.op} {args} {kwargs or ''}".strip()


class _Recorder(TorchDispatchMode):
    def __init__(self, op: torch._ops.OpOverload, keep: Callable[[list[Any], dict], None]) -> None:
        super().__init__()
        self.op, self.keep = op, keep
        name = op._schema.name.removeprefix("aten::")
        self.viewed = name.removesuffix("_copy") if name.endswith("_copy") else ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._is_call(func):
            copies = map_tensors(_detached, (list(args), dict(kwargs)))
            self.keep(*copies)
        return func(*args, **kwargs)

    def _is_call(self, func: Any) -> bool:
        if func == self.op:
            return True
        if _COPIES.get(func) == self.op._schema.name.removeprefix("aten::"):
            return True
        return (
            bool(self.viewed)
            and func._schema.name == f"aten::{self.viewed}"
            and func._overloadname == self.op._overloadname
        )


def _detached(t: torch.Tensor) -> torch.Tensor:
    """The same values, strides included, in a storage of its own."""
    with torch.utils._python_dispatch._disable_current_modes():
        return t.detach().clone() if t.numel() == 0 or not _overlaps(t) else t.detach().contiguous()


def _overlaps(t: torch.Tensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(t.shape, t.stride(), strict=True))


@cache
def _op_infos() -> dict[str, list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    infos: dict[str, list[Any]] = {}
    for info in op_db:
        for name in {info.name, info.aten_name}:
            infos.setdefault(name, []).append(info)
    return infos


def _infos_for(base: str) -> list[Any]:
    names = [base, f"nn.functional.{base}", f"special.{base}", *SOURCES.get(base, [])]
    found: list[Any] = []
    for name in dict.fromkeys(names):
        found += [info for info in _op_infos().get(name, []) if info not in found]
    return found


LARGEST = 1 << 16  # elements of a sample's tensors


def recorded(op: torch._ops.OpOverload, dtype: torch.dtype, most: int) -> Iterator[Sample]:
    """Calls of `op` that OpInfo's samples of `dtype` end in, of `most` structures at most."""
    base = op._schema.name.removeprefix("aten::")
    calls: list[Sample] = []
    seen: set[str] = set()

    def keep(args: list[Any], kwargs: dict[str, Any]) -> None:
        sample = Sample(op, args, kwargs, dtype)
        if sum(t.numel() for t in sample.tensors()) > LARGEST:
            return
        structure = sample.structure
        if structure not in seen:
            seen.add(structure)
            calls.append(sample)

    for info in _infos_for(base):
        if dtype not in info.dtypes:
            continue
        try:
            torch.manual_seed(0)
            for i, sample in enumerate(info.sample_inputs("cpu", dtype)):
                if i > 6 * most:
                    break
                with _Recorder(op, keep), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # a sample that eager itself refuses
            continue
    step = max(1, len(calls) // most)  # spread over all there are
    yield from calls[::step][:most]


def own(name: str, out: torch._ops.OpOverload, dtype: torch.dtype) -> Iterator[Sample]:
    """Our samples of the operator registered as `name`."""
    row = SAMPLES.get(name.removeprefix("aten::"))
    if row is None or not (
        dtype in row.dtypes or (dtype in UNSIGNED and torch.int64 in row.dtypes)
    ):
        return
    for args in row.make(Maker(dtype)):
        args = [list(a) if isinstance(a, tuple) else a for a in args]  # lists of optional tensors
        yield Sample(*call_of(out, args, dtype), dtype)


def samples_of(name: str, dtype: torch.dtype, most: int) -> list[Sample]:
    out = overload(name)
    try:
        op = functional_of(out)
    except LookupError:
        return []
    mine = list(own(name, out, dtype))
    if most < len(mine):
        step = len(mine) / most
        mine = [mine[int(i * step)] for i in range(most)]
    if not name.startswith("aten::") or op._schema.name in INEXACT:
        return mine
    return [*mine, *filter(_has_shape, recorded(op, dtype, most))]


def _has_shape(sample: Sample) -> bool:
    """torch.export mistakes the shape for dims counted from the end, which to_edge refuses."""
    if sample.op is not torch.ops.aten.unique_consecutive.default:
        return True
    dim = sample.args[3] if len(sample.args) > 3 else sample.kwargs.get("dim")
    return dim is None or dim >= 0
