"""From a model to a table of its values, as PyTorch and as the runtime compute them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from executorch.devtools.intermediate_output_tap._spec import TapSpec
from executorch.devtools.intermediate_output_tap._strip_pass import strip_taps_
from executorch.devtools.intermediate_output_tap._tap_pass import (
    TapRule,
    tap_intermediate_outputs_,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.torch_internals import pytree

if TYPE_CHECKING:
    import pandas as pd


def tap_compare(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    partitioner: list[Any] | None = None,
    *,
    rules: Sequence[TapRule] | TapRule | None = None,
    error_on_empty: bool = True,
) -> tuple[pd.DataFrame, list[TapSpec]]:
    """Export, tap, lower and run `model`; the table of `compare_aot_runtime_dataframe`, and the
    taps. `rules` and `error_on_empty` are those of `tap_intermediate_outputs_`."""
    from executorch.runtime import Runtime

    program = torch.export.export(model, example_inputs)
    program, specs = tap_intermediate_outputs_(program, rules, error_on_empty=error_on_empty)
    edge = to_edge_transform_and_lower(program, partitioner=partitioner or [])
    strip_taps_(edge)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    expected = pytree.tree_leaves(program.module()(*example_inputs))  # writes state: not before
    found = method.execute(pytree.tree_leaves(example_inputs))
    return compare_aot_runtime_dataframe(specs, expected, found), specs


def compare_aot_runtime_dataframe(
    specs: Sequence[TapSpec], aot_flat: Sequence[Any], rt_flat: Sequence[Any]
) -> pd.DataFrame:
    """A row for each tap, of the flat outputs of the tapped program in eager mode and in the
    runtime: `aot_<field>` and `rt_<field>` for the fields of its reducer, or for whole tensors
    `sqnr_db`, 20 log10(|aot| / |aot - rt|), and the numbers of elements."""
    import pandas as pd

    rows = []
    for spec in specs:
        aot, rt = (_floats(flat[spec.output_index]) for flat in (aot_flat, rt_flat))
        row: dict[str, Any] = {
            "node_name": spec.node_name,
            "module_path": spec.module_path,
            "module_class": spec.module_class,
            "op_target": spec.op_target,
            "reducer_name": spec.reducer_name,
            "output_index": spec.output_index,
        }
        if spec.reducer_name == "FULL_TENSOR":
            row |= {"sqnr_db": _sqnr_db(aot, rt), "aot_numel": len(aot), "rt_numel": len(rt)}
        else:
            for i, field in enumerate(spec.fields or [f"v{i}" for i in range(len(aot))]):
                for side, values in (("aot", aot), ("rt", rt)):
                    row[f"{side}_{field}"] = float(values[i]) if i < len(values) else math.nan
        rows.append(row)
    return pd.DataFrame(rows)


def _floats(value: Any) -> torch.Tensor:
    leaves = [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(value)]
    flat = [leaf.detach().to(torch.float32).cpu().reshape(-1) for leaf in leaves]
    return torch.cat(flat) if flat else torch.empty(0)


def _sqnr_db(aot: torch.Tensor, rt: torch.Tensor) -> float:
    """Infinite where nothing differs; NaN where the two are no values of one tensor."""
    if len(aot) != len(rt) or not len(aot):
        return math.nan
    noise = float(torch.linalg.vector_norm((aot - rt).double()))
    signal = float(torch.linalg.vector_norm(aot.double()))
    if noise == 0:
        return math.inf
    return 20 * math.log10(signal / noise) if signal else -math.inf
