"""`executorch_devtools::tap(x, reducer)`: in eager mode what the reducer makes of x."""

import torch
from torch.library import Library

from executorch.devtools.intermediate_output_tap._reducers import get_reducer

lib = Library("executorch_devtools", "DEF")
lib.define("tap.Tensor(Tensor x, str reducer_name) -> Tensor")


def _tap(x: torch.Tensor, reducer_name: str) -> torch.Tensor:
    return get_reducer(reducer_name).eager(x).clone()  # later nodes may write into x


lib.impl("tap.Tensor", _tap, "CompositeExplicitAutograd")
# Of tensors without values: above all of sizes that are symbols.
torch.library.register_fake("executorch_devtools::tap.Tensor", _tap, lib=lib)
