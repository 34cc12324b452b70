"""The names of the types of weights."""

import pytest
import torch

from executorch.extension.llm.export.builder import DType


def test_types_of_weights_have_names_of_their_own() -> None:
    assert all(DType.from_torch_dtype(dtype.to_torch_dtype()) is dtype for dtype in DType)
    with pytest.raises(ValueError, match=r"expected torch.float32.*found torch.int8"):
        DType.from_torch_dtype(torch.int8)
