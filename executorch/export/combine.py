"""One recipe out of several."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

from executorch.export.recipe import ExportRecipe, LoweringRecipe, QuantizationRecipe

# Lists whose order has no meaning.
_SETS = ("_core_aten_ops_exception_list", "preserve_ops")


def combined(recipes: list[ExportRecipe], name: str | None) -> ExportRecipe:
    """What several recipes say together. The recipes stay as they are; options are copies."""
    quantization = [r.quantization_recipe for r in recipes if r.quantization_recipe]
    lowering = [(r.name or f"recipes[{i}]", r.lowering_recipe) for i, r in enumerate(recipes)]
    stages = [tuple(r.pipeline_stages) if r.pipeline_stages else None for r in recipes]
    _one("pipeline_stages", stages)
    backend_configs = [r.executorch_backend_config for r in recipes if r.executorch_backend_config]
    return ExportRecipe(
        name=name,
        quantization_recipe=_quantization(quantization),
        aten_transform_passes=_joined(recipes, "aten_transform_passes"),
        source_transform_in_place=_one(
            "source_transform_in_place", [r.source_transform_in_place for r in recipes]
        ),
        lowering_recipe=_lowering([(n, each) for n, each in lowering if each is not None]),
        executorch_backend_config=copy.deepcopy(backend_configs[0]) if backend_configs else None,
        pipeline_stages=list(stages[0]) if stages[0] else None,
        mode=_one("mode", [r.mode for r in recipes]),
        strict=_one("strict", [r.strict for r in recipes]),
    )


def _one(field: str, values: list[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    if len(distinct) > 1:
        raise ValueError(f"Cannot combine recipes with conflicting '{field}' values: {distinct}")
    return values[0]


def _joined(parts: Iterable[Any], field: str) -> list[Any] | None:
    return [item for part in parts for item in getattr(part, field) or ()] or None


def _quantization(parts: list[QuantizationRecipe]) -> QuantizationRecipe | None:
    if not parts:
        return None
    trained = [part.train_fn for part in parts if part.train_fn]
    if len(trained) > 1:
        raise ValueError("Cannot combine recipes: more than one recipe provides a train_fn")
    lists = ("quantizers", "ao_quantization_configs")
    passes = ("pre_prepare_passes", "post_prepare_passes", "pre_convert_passes")
    joined = {f: _joined(parts, f) for f in (*lists, *passes, "post_convert_passes")}
    if not any(joined.values()):
        return None
    return QuantizationRecipe(
        **joined,
        is_qat=_one("is_qat", [part.is_qat for part in parts]),
        dynamic_batch_size=any(part.dynamic_batch_size for part in parts),
        calibration_inputs_fn=_chained([p.calibration_inputs_fn for p in parts]),
        train_fn=trained[0] if trained else None,
    )


def _chained(functions: list[Callable[[], Iterable[Any]] | None]) -> Any:
    """A function that gives what all of them give, in order."""
    given = [f for f in functions if f is not None]
    if len(given) < 2:
        return given[0] if given else None

    def calibration_inputs() -> Iterator[Any]:
        for function in given:
            yield from function()

    return calibration_inputs


def _lowering(named: list[tuple[str, LoweringRecipe]]) -> LoweringRecipe | None:
    from executorch.exir import EdgeCompileConfig

    parts = [part for _, part in named]
    config = _edge_config([(n, p.edge_compile_config) for n, p in named if p.edge_compile_config])
    joined = {
        field: _joined(parts, field)
        for field in ("edge_transform_passes", "edge_manager_transform_passes")
    }
    partitioners = _partitioners(parts)
    if not (partitioners or config or any(joined.values())):
        return None
    return LoweringRecipe(partitioners, **joined, edge_compile_config=config or EdgeCompileConfig())


def _partitioners(parts: list[LoweringRecipe]) -> Any:
    given = [part.partitioners for part in parts if part.partitioners]
    by_method: dict[str, list[Any]] = {}
    if not any(isinstance(each, dict) for each in given):
        return [p for each in given for p in each] or None
    for each in given:
        if not isinstance(each, dict):
            raise ValueError(
                "Cannot combine recipes that mix list-valued and dict-valued partitioners; give "
                "all of them by method"
            )
        for method, partitioners in each.items():
            by_method.setdefault(method, []).extend(partitioners)
    return by_method


def _edge_config(named: list[tuple[str, Any]]) -> Any:
    if not named:
        return None
    names = [f.name for f in fields(named[0][1])]
    differing = [
        f"{field} ({', '.join(f'{n}={_value(c, field)}' for n, c in named)})"
        for field in names
        if any(_value(c, field) != _value(named[0][1], field) for _, c in named[1:])
    ]
    if differing:
        raise ValueError(
            "Cannot combine recipes whose edge_compile_configs disagree on " + "; ".join(differing)
        )
    return copy.deepcopy(named[0][1])


def _value(config: Any, field: str) -> Any:
    value = getattr(config, field)
    return sorted(map(str, value or ())) if field in _SETS else value
