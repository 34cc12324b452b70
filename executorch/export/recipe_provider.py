"""What a backend implements to offer ready-made recipes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from executorch.export.recipe import ExportRecipe, RecipeType


class BackendRecipeProvider(ABC):
    @property
    @abstractmethod
    def backend_name(self) -> str:
        """As `RecipeType.get_backend_name` gives it."""

    @abstractmethod
    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """The types `create_recipe` knows."""

    @abstractmethod
    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The recipe; None for a type of another backend."""

    def supports_recipe(self, recipe_type: RecipeType) -> bool:
        return recipe_type in self.get_supported_recipes()
