from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools.intermediate_output_tap import (
    FULL_TENSOR,
    STATS,
    StatReducer,
    compare_aot_runtime_dataframe,
    find_tap_nodes,
    get_reducer,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
    strip_taps_,
    tap_compare,
    tap_intermediate_outputs_,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.torch_internals import tree_leaves
from executorch.runtime import Runtime


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(x))


def run(edge: Any, inputs: tuple[Any, ...]) -> list[Any]:
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    return list(method.execute(tree_leaves(inputs)))


def tapped_run(
    model: nn.Module, inputs: tuple[Any, ...], rules: Any = None, **options: Any
) -> tuple[Any, list[Any], list[Any]]:
    """The taps, and the outputs of the tapped program in eager mode and of the runtime."""
    program, specs = tap_intermediate_outputs_(torch.export.export(model, inputs, **options), rules)
    edge = to_edge_transform_and_lower(program)
    strip_taps_(edge)
    found = run(edge, inputs)
    return specs, tree_leaves(program.module()(*inputs)), found


@pytest.mark.parametrize("partitioner", [None, [XnnpackPartitioner()]])
def test_values_of_the_runtime_are_those_of_eager_mode(partitioner: Any) -> None:
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(3, 8)
    rules: Any = [
        (select_by_module_path("block.first"), FULL_TENSOR),
        (select_by_op_type("aten.relu.default", "linear.default"), "STATS"),
    ]
    table, specs = tap_compare(model, (x,), partitioner, rules=rules)
    assert [(s.module_path, s.module_class) for s in specs] == [
        ("block.first", "Linear"),
        ("block", "Block"),
        ("block.second", "Linear"),
        ("head", "Linear"),
    ]
    assert [s.output_index for s in specs] == [1, 2, 3, 4]
    bound = -20 * math.log10(8 * torch.finfo(torch.float32).eps)
    assert table.loc[0, "sqnr_db"] > bound and table.loc[0, "aot_numel"] == 48
    hidden = torch.relu(model.block.first(x))
    for field, expected in {
        "min": hidden.min(),
        "max": hidden.max(),
        "mean": hidden.mean(),
        "abs_max": hidden.max(),
        "abs_mean": hidden.mean(),
        "std": hidden.std(correction=0),
        "rms": hidden.square().mean().sqrt(),
        "l1_norm": hidden.sum(),
        "l2_norm": hidden.norm(),
        "nan_count": torch.tensor(0.0),
        "inf_count": torch.tensor(0.0),
        "zero_count": (hidden == 0).sum().float(),
        "p99_abs": hidden.max(),
    }.items():
        found = torch.tensor(table.loc[1, [f"aot_{field}", f"rt_{field}"]].tolist())
        torch.testing.assert_close(found, expected.detach().expand(2))


def test_taps_stay_outside_of_delegates() -> None:
    x = torch.randn(3, 8)
    program, _ = tap_intermediate_outputs_(torch.export.export(Net(), (x,)))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert len(find_tap_nodes(edge.exported_program().graph_module)) == 4
    strip_taps_(edge)
    assert not find_tap_nodes(edge.exported_program().graph_module)
    strip_taps_(edge)  # of none
    assert len(run(edge, (x,))) == 5


def test_values_that_are_no_numbers_are_counted() -> None:
    class Bad(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.log(x) * 2

    x = torch.tensor([-1.0, 0.0, 1.0, 2.0])
    table, _ = tap_compare(Bad(), (x,), rules=(select_by_op_type("aten.log.default"), STATS))
    for side in ("aot", "rt"):
        counts = [table.loc[0, f"{side}_{what}_count"] for what in ("nan", "inf", "zero")]
        assert counts == [1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32, torch.bool])
def test_statistics_are_of_any_type(dtype: torch.dtype) -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x])

    x = torch.arange(-3, 4).to(dtype)
    _, expected, found = tapped_run(Twice(), (x,))
    torch.testing.assert_close(found, expected)
    assert found[1].dtype is torch.float32
    assert found[1][STATS.fields.index("mean")] == x.float().mean()


def test_statistics_of_dynamic_sizes() -> None:
    x = torch.randn(130, 8)
    program = torch.export.export(
        Net(), (x,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=200)},)
    )
    program, specs = tap_intermediate_outputs_(program)
    edge = to_edge_transform_and_lower(program)
    strip_taps_(edge)
    for n in (2, 130, 200):
        x = torch.randn(n, 8)
        table = compare_aot_runtime_dataframe(
            specs, tree_leaves(program.module()(x)), run(edge, (x,))
        )
        for field in STATS.fields:
            aot, rt = (torch.tensor(table[f"{side}_{field}"].tolist()) for side in ("aot", "rt"))
            torch.testing.assert_close(rt, aot, atol=1e-5, rtol=1e-5)


def test_what_is_no_tensor_is_no_tap_and_state_is_no_output() -> None:
    class Mixed(nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            low, high = torch.split(x, 3)
            self.seen.add_(low)
            return {"high": high + self.seen, "low": low * 2}

    x = torch.arange(6.0)
    rules = (select_not(select_by_op_type("split.Tensor")), FULL_TENSOR)
    specs, expected, found = tapped_run(Mixed(), (x,), rules)
    torch.testing.assert_close(found, expected)
    table, _ = tap_compare(Mixed(), (x,), rules=rules)
    assert set(table.sqnr_db) == {math.inf}
    by_operator = {s.op_target: found[s.output_index] for s in specs}
    assert torch.equal(by_operator["aten.mul.Tensor"], 2 * x[:3])
    assert tap_intermediate_outputs_(torch.export.export(Mixed(), (x,)))[1]  # split is a tuple


def test_values_are_those_before_later_writes() -> None:
    class Writes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            doubled = x * 2
            doubled.add_(1)
            return doubled

    x = torch.arange(3.0)
    rule = (select_by_op_type("mul.Tensor"), FULL_TENSOR)
    _, expected, found = tapped_run(Writes(), (x,), rule)
    for outputs in (expected, found):
        assert torch.equal(outputs[0], 2 * x + 1) and torch.equal(outputs[1], 2 * x)


def test_outputs_are_counted_without_state_that_is_written() -> None:
    class Counter(nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(x)
            return x * 2

    x = torch.ones(2)
    program = torch.export.export(Counter(), (x,)).run_decompositions({})
    rule = (select_by_op_type("mul.Tensor"), FULL_TENSOR)
    program, (spec,) = tap_intermediate_outputs_(program, rule)
    edge = to_edge_transform_and_lower(program)
    strip_taps_(edge)
    assert torch.equal(run(edge, (x,))[spec.output_index], 2 * x)


def test_reducers_of_the_user() -> None:
    amax = exir_ops.edge.aten.amax.default
    largest = StatReducer(
        "LARGEST",
        ("largest",),
        lambda g, n: g.call_function(amax, (n, [], True)),
        lambda x: x.amax().reshape(1, 1),
    )
    x = torch.randn(3, 8)
    table, _ = tap_compare(Net(), (x,), rules=(select_by_module_path("head"), largest))
    torch.testing.assert_close(table.loc[0, "rt_largest"], table.loc[0, "aot_largest"])
    assert get_reducer("LARGEST") is largest
    false = StatReducer("STATS", (), largest.emit, largest.eager)
    with pytest.raises(ValueError, match="'STATS' is that of another reducer"):
        tap_compare(Net(), (x,), rules=(select_all_call_function(), false))
    with pytest.raises(ValueError, match="no reducer 'other'"):
        get_reducer("other")


def test_selectors() -> None:
    nodes = torch.export.export(Net(), (torch.randn(3, 8),)).graph.nodes

    def names(selector: Any) -> list[str]:
        return [n.name for n in nodes if selector(n)]

    linear, relu = select_by_op_type("aten.linear.default"), select_by_op_type("relu.default")
    assert names(select_all_call_function()) == ["linear", "relu", "linear_1", "linear_2"]
    assert names(select_all_call_function(("aten.relu.default",))) == names(linear)
    assert names(select_any(linear, relu)) == names(select_all_call_function())
    assert names(select_all(linear, select_by_module_path("block*"))) == ["linear_1"]
    assert names(select_by_module_path("block", output_only=False)) == names(
        select_by_module_class("Block", output_only=False)
    )
    assert names(select_by_module_class("Block")) == ["linear_1"]
    assert names(select_by_module_class("Linear")) == names(linear)
    for needs_names in (select_by_op_type, select_by_module_path, select_by_module_class):
        with pytest.raises(ValueError, match="expected at least one name"):
            needs_names()


def test_numbers_of_taps() -> None:
    nothing = (select_by_op_type("no.such"), FULL_TENSOR)
    program = torch.export.export(Net(), (torch.randn(3, 8),))
    with pytest.raises(ValueError, match="select no node"):
        tap_intermediate_outputs_(program, nothing)
    with pytest.warns(UserWarning, match="select no node"):
        assert tap_intermediate_outputs_(program, nothing, error_on_empty=False)[1] == []
    with pytest.raises(ValueError, match="expected at least one"):
        tap_intermediate_outputs_(program, [])
    assert len(tap_intermediate_outputs_(program, max_taps=2)[1]) == 2
    assert len(tap_intermediate_outputs_(program)[1]) == 4  # taps are not tapped
