"""The backends that offer recipes. A backend's `recipes` package registers its provider."""

from __future__ import annotations

from typing import Any

from executorch.export.recipe import ExportRecipe, RecipeType
from executorch.export.recipe_provider import BackendRecipeProvider


class RecipeRegistry:
    """One object, however often it is made."""

    _instance: RecipeRegistry | None = None
    _initialized = False
    _providers: dict[str, BackendRecipeProvider]

    def __new__(cls) -> RecipeRegistry:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __init__(self) -> None:
        if not RecipeRegistry._initialized:
            self._providers = {}
            RecipeRegistry._initialized = True

    def register_backend_recipe_provider(self, provider: BackendRecipeProvider) -> None:
        """The last provider of a backend is the one that counts."""
        self._providers[provider.backend_name] = provider

    def create_recipe(
        self, recipe_type: RecipeType, backend: str, **kwargs: Any
    ) -> ExportRecipe | None:
        """The backend's recipe; None if it has none of that type. ValueError that names the
        backends there are for another one."""
        return self._provider(backend).create_recipe(recipe_type, **kwargs)

    def get_supported_recipes(self, backend: str) -> list[RecipeType]:
        return list(self._provider(backend).get_supported_recipes())

    def _provider(self, backend: str) -> BackendRecipeProvider:
        if backend not in self._providers:
            raise ValueError(
                f"Backend '{backend}' not available. Available: {self.list_backends()}"
            )
        return self._providers[backend]

    def list_backends(self) -> list[str]:
        return sorted(self._providers)


recipe_registry = RecipeRegistry()
