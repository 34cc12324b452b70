"""What the exporter writes for a dozen small models, as text: a diff shows what a change does.

`./dev golden` rewrites the dumps.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.built import COMMAND, needs
from tests.models import zoo
from tests.models.export import export


@needs(COMMAND)
@pytest.mark.parametrize("name", zoo.CASES)
def test_dump_is_as_recorded(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.pte"
    export(zoo.build(name), path)
    inspect = [COMMAND, "inspect", path.name]
    dump = subprocess.run(inspect, cwd=tmp_path, capture_output=True, text=True)
    assert dump.returncode == 0, dump.stderr
    golden = Path(__file__).with_name(f"{name}.txt")
    if os.environ.get("EXECUTORCH_UPDATE_GOLDENS"):
        golden.write_text(dump.stdout)
    assert dump.stdout == golden.read_text()
