"""Bilinear resizing by a factor or to a size, lowered to XNNPACK, beside eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


@pytest.mark.parametrize(
    ("options", "whole"),
    [
        ({"scale_factor": 2.0}, True),
        # 7 columns by 1.5 are 10: the payload, which has no factor, would divide 7 by 10.
        ({"scale_factor": 1.5}, False),
        ({"scale_factor": (2.0, 0.5)}, False),
        ({"scale_factor": 1.5, "align_corners": True}, True),
        ({"size": (9, 10)}, True),
    ],
)
def test_resizing_is_lowered_where_the_payload_can_say_it(
    options: dict[str, object], whole: bool
) -> None:
    model = nn.Upsample(mode="bilinear", **options).eval()  # type: ignore[arg-type]
    x = torch.arange(2 * 3 * 6 * 7).reshape(2, 3, 6, 7).sin()
    program = to_edge_transform_and_lower(
        export(model, (x,)), partitioner=[XnnpackPartitioner()]
    ).to_executorch()
    delegates = program.executorch_program.execution_plan[0].delegates
    assert (len(delegates) == 1) is whole
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    torch.testing.assert_close(method.execute([x])[0], model(x))
