"""The fast slice of `./dev conformance`: few samples of each operator in few types."""

from __future__ import annotations

import pytest

from tests.conformance.checks import check, operators
from tests.conformance.report import unsampled
from tests.conformance.samples import Sample

# Operators of one kernel with many others stand for them here.
DTYPES = ["float32", "int64", "bool", "complex64"]
N_SLICES = 8


@pytest.mark.parametrize("part", range(N_SLICES))
def test_every_operator_agrees_with_eager_in_a_program(part: int) -> None:
    rows = [row for name in operators()[part::N_SLICES] for row in check(name, 2, DTYPES)]
    assert not [reason for row in rows if row.failed for reason in row.reasons]


def test_an_operator_without_samples_is_named() -> None:
    rows = check("aten::_local_scalar_dense", 1, ["float32"])
    assert unsampled(rows) == ["aten::_local_scalar_dense"]


def test_a_wrong_result_fails() -> None:
    import torch

    from tests.conformance.runs import difference

    sample = Sample(torch.ops.aten.relu.default, [torch.ones(2)], {}, torch.float32)
    assert "not close" in difference(sample, [torch.zeros(2)], [torch.ones(2)])
    assert "instead of" in difference(sample, [torch.ones(3)], [torch.ones(2)])


def test_a_half_may_differ_from_eager_only_where_it_is_nearer_to_double_precision() -> None:
    import torch

    from tests.conformance.runs import difference

    x = torch.linspace(0.1, 3, 64).to(torch.bfloat16)
    sample = Sample(torch.ops.aten.exp.default, [x], {}, torch.bfloat16)
    right = x.double().exp().to(torch.bfloat16)
    off = right.clone().view(torch.int16)
    off[7] += 1  # one unit in the last place: within what two roundings might do
    assert difference(sample, [right], [right]) == ""
    assert "farther" in difference(sample, [off.view(torch.bfloat16)], [right])


def test_what_is_not_exported_fails_unless_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tests.conformance import not_exported, runs

    def refuse(batch: list[Sample]) -> None:
        raise RuntimeError("no such operator")

    monkeypatch.setattr(runs, "_export", refuse)
    sample = Sample(torch.ops.aten.relu.default, [torch.ones(2)], {}, torch.float32)
    assert [o.status for o in runs.run("aten::relu.out", [sample])] == ["failed"]
    listed = {("aten::relu.out", "no such"): "a test"}
    monkeypatch.setattr(not_exported, "NOT_EXPORTED", listed)
    assert [o.status for o in runs.run("aten::relu.out", [sample])] == ["skipped"]
