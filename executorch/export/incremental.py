"""The step of an export that lets a language model remember the tokens it has seen."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from executorch.exir.incremental import NotCausalError, make_incremental


class MakeIncremental:
    """`make_incremental` as one of a recipe's aten_transform_passes.

    required  raise where it cannot be done; else the program stays as it is
    After a run, `stateless` is the program as it was, and `reason` why it stays so, or None.
    """

    def __init__(self, required: bool, cache_dtype: torch.dtype = torch.float32) -> None:
        self.required = required
        self.cache_dtype = cache_dtype
        self.stateless: ExportedProgram | None = None
        self.reason: str | None = None

    def __call__(self, method: str, program: ExportedProgram) -> ExportedProgram:
        self.stateless = program
        try:
            return make_incremental(program, cache_dtype=self.cache_dtype)
        except NotCausalError as error:
            if self.required:
                raise
            self.reason = str(error)
            return program
