"""Every kernel gives what eager PyTorch gives, for every type, layout and kind of argument."""

from __future__ import annotations

import pytest
import torch

from executorch.runtime import Runtime
from tests.ops import (  # noqa: F401  (they add their rows)
    samples_beyond_core,
    samples_of_gradients,
    samples_of_quantized,
    samples_of_shapes,
)
from tests.ops.oracle import ANY_VALUE, FIRST_ONLY, expected, overload, tolerance
from tests.ops.program import Call, run
from tests.ops.samples import SAMPLES, Maker

CASES = [(name, dtype) for name, row in SAMPLES.items() for dtype in row.dtypes]


@pytest.mark.parametrize(
    ("name", "dtype"), CASES, ids=[f"{n}-{str(d).removeprefix('torch.')}" for n, d in CASES]
)
def test_kernel_agrees_with_eager(name: str, dtype: torch.dtype) -> None:
    out = overload(name)
    samples = SAMPLES[name].make(Maker(dtype))
    wants = [expected(out, args, dtype) for args in samples]
    list_out = str(out._schema.arguments[-1].type).startswith("List")
    calls = [
        Call(name if "::" in name else f"aten::{name}", args, want, list_out=list_out)
        for args, want in zip(samples, wants, strict=True)
    ]
    for args, found, want in zip(samples, run(calls), wants, strict=True):
        assert len(found) == len(want)
        if out._schema.name in FIRST_ONLY:
            found, want = found[:1], want[:1]
        for got, right in zip(found, want, strict=True):
            if out._schema.name in ANY_VALUE:
                assert got.shape == right.shape and got.dtype == right.dtype
                continue
            rtol, atol = tolerance(args, right, out._schema.name)
            torch.testing.assert_close(
                got,
                right,
                rtol=rtol,
                atol=atol,
                equal_nan=True,
                check_stride=False,
                msg=lambda text, args=args: f"{name} on {args}: {text}",
            )


# Prim operators, what has no functional form in PyTorch, and what is random: tested beside their
# subject.
NOT_SAMPLED = {
    "aten::_local_scalar_dense",
    "aten::_native_batch_norm_legit.out",
    "aten::copy_",
    "aten::index_put_",
    "aten::sym_numel",
    "aten::sym_size.int",
    "aten::sym_storage_offset",
    "aten::sym_stride.int",
}


def test_every_operator_is_sampled() -> None:
    names = Runtime.get().operator_registry.operator_names
    aten = {name for name in names if name.startswith("aten::")}
    assert {n for n in aten if n.removeprefix("aten::") not in SAMPLES} == NOT_SAMPLED
