"""Recipes by device rather than by backend, for the devices whose backends are there."""

from __future__ import annotations

from typing import Any

from executorch.export.recipe import ExportRecipe
from executorch.export.recipe_registry import recipe_registry


def _of(target: str, known: dict[str, str]) -> ExportRecipe:
    if target not in known:
        raise ValueError(f"unknown target {target!r}; there are {sorted(known)}")
    raise ValueError(
        f"target {target!r} needs the backend {known[target]!r}, which offers no recipes here; "
        f"there are those of {recipe_registry.list_backends()}"
    )


def get_ios_recipe(target_config: str = "ios-arm64-coreml-fp16", **kwargs: Any) -> ExportRecipe:
    """Raises ValueError: the Core ML backend is not part of this release."""
    return _of(
        target_config, dict.fromkeys(("ios-arm64-coreml-fp16", "ios-arm64-coreml-int8"), "coreml")
    )


def get_android_recipe(
    target_config: str = "android-arm64-snapdragon-fp16", **kwargs: Any
) -> ExportRecipe:
    """Raises ValueError: the QNN backend is not part of this release."""
    return _of(target_config, {"android-arm64-snapdragon-fp16": "qnn"})
