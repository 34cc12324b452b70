"""Damaged ETDumps, bundles and ETRecords are read or refused with an error, whatever the damage.

As a test: a slice that is the same every time. Longer:
    python -m tests.fuzz.devtools_files_test SECONDS [SEED]
"""

from __future__ import annotations

import io
import json
import random
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from executorch.devtools import BundledProgram, Inspector, parse_etrecord
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    deserialize_from_flatbuffer_to_bundled_program,
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import to_edge
from executorch.extension.pybindings.portable_lib import (
    _load_bundled_program_from_buffer,
    _load_for_executorch_from_buffer,
)

SLICE = 300
NUMBERS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.layer(x), -1)


class Files:
    """One of each kind, of the same program."""

    def __init__(self, folder: Path) -> None:
        x = torch.ones(2, 3)
        model = Net()
        exported = torch.export.export(model, (x,))
        program = to_edge(exported, generate_etrecord=True).to_executorch()
        self.folder = folder
        self.record = folder / "record"
        record = program.get_etrecord()
        record.update_representative_inputs([x])
        record.save(self.record)
        module = _load_for_executorch_from_buffer(
            program.buffer, enable_etdump=True, debug_buffer_size=1 << 12
        )
        module.forward((x,))
        dump, values = folder / "dump", folder / "values"
        module.write_etdump_result_to_file(str(dump), str(values))
        self.dump, self.values = dump.read_bytes(), values
        suite = MethodTestSuite("forward", [MethodTestCase((x,), [model(x)])])
        self.bundle = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [suite]))

    def read_dump(self, random: random.Random) -> None:
        path = self.folder / "damaged.etdp"
        path.write_bytes(damaged(self.dump, random))
        inspector = Inspector(
            str(path), etrecord=str(self.record), debug_buffer_path=str(self.values)
        )
        inspector.to_dataframe()
        inspector.print_data_tabular(io.StringIO())
        inspector.find_total_for_module("layer")

    def read_bundle(self, random: random.Random) -> None:
        data = damaged(self.bundle, random)
        deserialize_from_flatbuffer_to_bundled_program(data)

    def run_bundle(self, random: random.Random) -> None:
        bundle = _load_bundled_program_from_buffer(damaged(self.bundle, random))
        bundle.verify_result_with_bundled_expected_output("forward", 0, 1e-5, 1e-8)

    def read_record(self, random: random.Random) -> None:
        """Damage behind the archive's checksums, or of the archive itself."""
        path = self.folder / "damaged.etrecord"
        if random.random() < 0.3:
            path.write_bytes(damaged(self.record.read_bytes(), random))
        else:
            with zipfile.ZipFile(self.record) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            name = random.choice([n for n, data in members.items() if data])
            members[name] = damaged_text(members[name], random)
            with zipfile.ZipFile(path, "w") as archive:
                for each, data in members.items():
                    archive.writestr(each, data)
        parse_etrecord(str(path))


def damaged(data: bytes, random: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(out))
        match random.randrange(4):
            case 0:
                out[at] ^= 1 << random.randrange(8)
            case 1:
                place = at & ~3
                out[place : place + 4] = struct.pack("<I", random.choice(NUMBERS))
            case 2:
                other = random.randrange(len(out))
                out[at : at + 8] = out[other : other + 8]
            case _:
                del out[max(at, 8) :]
        if not out:
            break
    return bytes(out)


def damaged_text(data: bytes, random: random.Random) -> bytes:
    """JSON with one value changed; other bytes as they come."""
    try:
        root = json.loads(data)
    except ValueError:
        return damaged(data, random)
    places: list[tuple[dict | list, str | int]] = []

    def collect(item: object) -> None:
        if isinstance(item, (dict, list)):
            for key in item if isinstance(item, dict) else range(len(item)):
                places.append((item, key))
                collect(item[key])

    collect(root)
    if not places:
        return b"[]"
    holder, key = random.choice(places)
    holder[key] = random.choice((None, -1, 10**30, "", "x", [], {}, True, [[]], {"as_int": {}}))
    return json.dumps(root).encode()


KINDS = ("read_dump", "read_bundle", "run_bundle", "read_record")
# What the readers raise on purpose: RuntimeError comes from the runtime, and from files that are no
# archive of records.
REFUSED = (ValueError, RuntimeError)


def attempt(read: Callable[[random.Random], None], seed: int) -> str:
    try:
        read(random.Random(seed))
    except REFUSED as error:
        assert str(error)
        return "refused"
    return "read"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_read_or_refused(files: Files, kind: str) -> None:
    outcomes = Counter(attempt(getattr(files, kind), seed) for seed in range(SLICE))
    assert outcomes["refused"] > 0, outcomes


def main(seconds: float, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        end, outcomes = time.monotonic() + seconds, Counter[str]()
        while time.monotonic() < end:
            kind = KINDS[seed % len(KINDS)]
            try:
                outcomes[f"{kind}: {attempt(getattr(files, kind), seed)}"] += 1
            except Exception as error:
                outcomes[f"{kind}: {type(error).__name__}"] += 1
                print(f"seed {seed}, {kind}: {type(error).__name__}: {error}", file=sys.stderr)
            seed += 1
        print(dict(outcomes))


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:3]))
