"""The profile of products that compute the rows which count."""

import json
from pathlib import Path

import torch
from torch.export import export

from executorch.exir import to_edge
from executorch.extension.command.command_test import output_of
from tests.built import COMMAND, needs

pytestmark = needs(COMMAND)


def test_profile_counts_no_work_where_it_depends_on_the_inputs(tmp_path: Path) -> None:
    class Weighed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            factor = torch.relu(x.sum(-1, keepdim=True))
            return x + self.layer(x) * factor

    path = tmp_path / "weighed.pte"
    path.write_bytes(
        to_edge(export(Weighed().eval(), (torch.randn(8, 64),))).to_executorch().buffer
    )
    profile = json.loads(output_of("profile", path, "--json", "--runs", 8))
    rows = [r for r in profile["instructions"] if r["operator"].endswith("+selected_rows")]
    assert len(rows) == 1
    assert rows[0]["flop"] == rows[0]["bytes"] == 0 < rows[0]["seconds"]
