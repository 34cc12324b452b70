"""Sessions of one engine in C++ (text_session_test.cpp), on programs exported here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch
from torch.export import Dim, export

from executorch.exir import make_incremental, to_edge
from tests.built import BUILD, needs
from tests.incremental.models import MOST_TOKENS, AllPositions, Model

BINARY = BUILD / "executorch" / "extension" / "llm" / "runner" / "extension_llm_session_test"


@needs(BINARY)
@pytest.mark.parametrize("kind", [Model, AllPositions])
@pytest.mark.parametrize("incremental", [True, False])
def test_sessions(kind: type[torch.nn.Module], incremental: bool, tmp_path: Path) -> None:
    torch.manual_seed(3)
    ids = torch.zeros(1, 9, dtype=torch.int64)
    exported = export(kind().eval(), (ids,), dynamic_shapes=({1: Dim("n", max=MOST_TOKENS)},))
    if incremental:
        exported = make_incremental(exported)
    path = tmp_path / "model.pte"
    path.write_bytes(to_edge(exported).to_executorch().buffer)
    environment = {
        **os.environ,
        "ET_TEST_PROGRAM": str(path),
        "ET_TEST_INCREMENTAL": str(int(incremental)),
    }
    done = subprocess.run(
        [str(BINARY)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout
