"""Export an MLP whose linear layers are custom operators, and run the program from Python.

python export_custom_linear.py LIBRARY [PROGRAM]
"""

from __future__ import annotations

import sys

import torch
from custom_linear import replace_linear_with_custom_linear
from torch import nn

from executorch.exir import to_edge
from executorch.runtime import Runtime


def main(library: str, path: str = "custom_linear.pte") -> None:
    torch.ops.load_library(library)  # for eager mode, the exporter and executorch.runtime
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4, bias=False)).eval()
    expected = model(torch.ones(2, 16))
    replace_linear_with_custom_linear(model)
    torch.testing.assert_close(model(torch.ones(2, 16)), expected)

    batch = torch.export.Dim("batch", max=8)
    exported = torch.export.export(
        model, (torch.randn(2, 16),), dynamic_shapes={"input": {0: batch}}
    )
    to_edge(exported).to_executorch().save(path)

    method = Runtime.get().load_program(path).load_method("forward")
    for rows in (1, 2, 8):
        x = torch.randn(rows, 16)
        torch.testing.assert_close(method.execute([x])[0], model(x).detach())
    print("\n".join(f"{v:.6f}" for v in method.execute([torch.ones(2, 16)])[0].flatten()))


if __name__ == "__main__":
    main(*sys.argv[1:])
