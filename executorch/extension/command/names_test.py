"""The names that a model has for its inputs and outputs, in the `executorch` command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import torch

from executorch.exir import to_edge
from executorch.extension.command.command_test import output_of, run
from tests.built import COMMAND, needs

pytestmark = needs(COMMAND)


class Weighted(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": x + 2 * weight}


def test_inputs_and_outputs_have_the_models_names(tmp_path: Path) -> None:
    path, x, weight = tmp_path / "model.pte", tmp_path / "x.npy", tmp_path / "a=b.npy"
    dims = {0: torch.export.Dim("n", max=9)}
    inputs = (torch.ones(3), torch.ones(3))
    exported = torch.export.export(Weighted(), inputs, dynamic_shapes=(dims, dims))
    to_edge(exported).to_executorch().save(str(path))
    np.save(x, np.array([1, 2], np.float32))
    np.save(weight, np.array([3, 4], np.float32))

    method = json.loads(output_of("inspect", path, "--json"))["methods"][0]
    assert (method["input_names"], method["output_names"]) == (["x", "weight"], ["sum"])
    assert re.search(
        r"method forward\(%\d+ x, %\d+ weight\) -> \(%\d+ sum\)", output_of("inspect", path)
    )
    for files in ((f"weight={weight}", f"x={x}"), (x, weight), (x, f"weight={weight}")):
        given = [word for file in files for word in ("--inputs", file)]
        [result] = json.loads(output_of("run", path, *given, "--all", "--json"))["outputs"]
        assert (result["name"], result["data"]) == ("sum", [7, 10])
    shaped = json.loads(output_of("run", path, "--shape", "weight=4,x=4", "--json"))
    assert shaped["outputs"][0]["sizes"] == [4]
    for options, cause in (
        (("--inputs", f"x={x},x={x}"), "two input files for input 0 (x)"),
        (
            ("--inputs", f"weight={weight}"),
            "1 input files for 2 tensor inputs: none for input 0 (x)",
        ),
        (("--inputs", f"y={x},{weight}"), f"y={x}"),
        (("--shape", "x=10"), "input 0 (x, Float 9 at most) cannot be 10"),
    ):
        done = run("run", path, *options)
        assert (done.returncode, cause in done.stderr) == (1, True), done.stderr
