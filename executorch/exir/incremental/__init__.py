"""Language models that keep what they computed for the tokens they have seen."""

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.make_incremental import make_incremental

__all__ = ["NotCausalError", "make_incremental"]
