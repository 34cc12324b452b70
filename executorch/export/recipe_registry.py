"""The backends that offer recipes. A backend's `recipes` package registers its provider."""

from __future__ import annotations

from typing import Any

from executorch.export.recipe import ExportRecipe, RecipeType
from executorch.export.recipe_provider import BackendRecipeProvider


class RecipeRegistry:
    def __init__(self) -> None:
        self._providers: dict[str, BackendRecipeProvider] = {}

    def register_backend_recipe_provider(self, provider: BackendRecipeProvider) -> None:
        """The last provider of a backend is the one that counts."""
        self._providers[provider.backend_name] = provider

    def create_recipe(self, recipe_type: RecipeType, backend: str, **kwargs: Any) -> ExportRecipe:
        """Raises ValueError naming the known backends or the backend's recipes."""
        provider = self._providers.get(backend)
        if provider is None:
            raise ValueError(
                f"no recipes of backend {backend!r} are registered; there are those of "
                f"{self.list_backends()}"
            )
        recipe = provider.create_recipe(recipe_type, **kwargs)
        if recipe is None:
            known = [r.value for r in provider.get_supported_recipes()]
            raise ValueError(f"{backend} has no recipe {recipe_type.value!r}; it has {known}")
        return recipe

    def get_supported_recipes(self, backend: str) -> list[RecipeType]:
        if backend not in self._providers:
            raise ValueError(f"no recipes of backend {backend!r} are registered")
        return list(self._providers[backend].get_supported_recipes())

    def list_backends(self) -> list[str]:
        return sorted(self._providers)


recipe_registry = RecipeRegistry()
