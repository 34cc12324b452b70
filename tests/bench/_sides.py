"""The sides that are compared, their processes, and the programs they run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _cases import Case

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUTPUT = ROOT / "output" / "bench"


@dataclass(frozen=True)
class Side:
    name: str  # as the tables say
    worker: str  # of _worker.py; "here": the C++ runner
    kind: str | None  # of program, None: the module itself
    environment: str  # whose Python drives it
    writer: str  # whose Python writes its program


SIDES = {
    side.name: side
    for side in (
        Side("here", "here", "ours", "own", "own"),
        Side("here (upstream's file)", "here", "upstream", "own", "upstream"),
        Side("before", "here", "ours", "own", "own"),  # another build of this project
        Side("upstream", "upstream", "upstream", "upstream", "upstream"),
        Side("upstream XNNPACK", "upstream", "xnnpack", "upstream", "upstream"),
        Side("upstream (our file)", "upstream", "ours", "upstream", "own"),
        Side("eager", "eager", None, "own", "own"),
        Side("ONNX Runtime", "onnxruntime", "onnx", "peers", "peers"),
        Side("OpenVINO", "openvino", "onnx", "peers", "peers"),
    )
}


class Failure(Exception):
    """Why a side gave no answer; the text stands in the table."""


class Worker:
    """A side's process. It sleeps between commands; `stop` or a time limit ends it."""

    def __init__(self, command: list[str], threads: int) -> None:
        cores = sorted(os.sched_getaffinity(0))[:threads]
        env = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "PYTHONPATH": str(ROOT) if command[0] == sys.executable else "",
        }
        name = "-".join(Path(part).name for part in command)
        self.process = subprocess.Popen(
            command,
            cwd=OUTPUT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(OUTPUT / f"{name}.log").open("w"),
            preexec_fn=lambda: os.sched_setaffinity(0, cores),  # noqa: PLW1509 (one thread here)
        )

    def ask(self, limit: float = 600, **command: Any) -> dict:
        """The answer to one command. Raises Failure; the process is then gone."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"crashed ({self.process.wait()})") from None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(limit):
                self.stop()
                raise Failure(f"> {limit:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"crashed ({self.process.wait()})")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def wait_until_idle(self, most: float = 2.0) -> None:
        """Returns when the side's threads, which may spin on after an answer, no longer run."""
        end = time.monotonic() + most
        before = -1
        while time.monotonic() < end:
            # Behind the name in parentheses: the 12th and 13th field, in ticks of 10 ms.
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            if ticks == before:
                return
            before = ticks
            time.sleep(0.04)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Programs:
    """Program files, one folder for each kind; written again when what they depend on is newer."""

    def __init__(self, pythons: dict[str, str]) -> None:
        self.pythons = pythons
        self.failures: dict[Path, str] = {}

    def path(self, side: Side, case: Case) -> Path:
        assert side.kind
        suffix = "onnx" if side.kind == "onnx" else "pte"
        return OUTPUT / side.kind / f"{case.program}.{suffix}"

    def write(self, kind: str, cases: list[Case], done: Any) -> None:
        """Bring the files of one kind up to date; `done` is called after each."""
        side = next(s for s in SIDES.values() if s.kind == kind)
        wanted = {self.path(side, case): case for case in cases}
        newest = newest_source(kind)
        stale = {p: c for p, c in wanted.items() if not p.exists() or p.stat().st_mtime < newest}
        (OUTPUT / kind).mkdir(parents=True, exist_ok=True)
        for _ in range(len(wanted) - len(stale)):
            done()
        if not stale:
            return
        files = json.dumps({case.name: str(path) for path, case in stale.items()})
        python = self.pythons.get(side.writer)
        self.failures |= dict.fromkeys(stale, f"no environment {side.writer!r}")
        if python is None:
            return
        command = [python, str(HERE / "_worker.py"), "write", kind]
        path = str(ROOT) if side.writer == "own" else ""
        with (OUTPUT / f"write-{kind}.log").open("w") as log:
            process = subprocess.Popen(
                command,
                cwd=OUTPUT,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            assert process.stdin and process.stdout
            process.stdin.write(files)
            process.stdin.close()
            by_name = {case.name: path for path, case in stale.items()}
            for line in process.stdout:
                answer = json.loads(line)
                file = by_name[answer["case"]]
                if answer["error"]:
                    file.unlink(missing_ok=True)
                    self.failures[file] = f"export: {answer['error']}"
                else:
                    del self.failures[file]
                done()
            process.wait()


def newest_source(kind: str) -> float:
    """When what decides a program's bytes was last changed."""
    shared = [
        HERE / name
        for name in ("_cases.py", "_nets.py", "_operators.py", "_streams.py", "_worker.py")
    ]
    sources = [*shared, ROOT / "examples" / "nanogpt" / "model.py"]
    if kind == "ours":
        exir, backend = ROOT / "executorch" / "exir", ROOT / "executorch" / "backends" / "xnnpack"
        sources += [*exir.rglob("*.py"), *exir.glob("*.so"), *backend.rglob("*.py")]
    return max(path.stat().st_mtime for path in sources)


def write_inputs(case: Case) -> list[dict]:
    """Raw files of the case's inputs, described as the workers read them."""
    described = []
    for i, tensor in enumerate(case.inputs()):
        file = OUTPUT / f"input{i}.bin"
        flat = tensor.reshape(-1)  # a 0-d tensor has no bytes to view
        flat.view(torch.uint8).numpy().tofile(file)
        dtype = str(tensor.dtype).removeprefix("torch.")
        described.append({"file": str(file), "dtype": dtype, "sizes": list(tensor.shape)})
    return described


def read_output(answer: dict) -> np.ndarray:
    """As float32, which holds what sides are to agree in."""
    dtype = getattr(torch, answer.get("dtype", "float32"))
    data = bytearray((OUTPUT / "output.bin").read_bytes())
    return torch.frombuffer(data, dtype=dtype).reshape(answer["sizes"]).float().numpy()


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference relative to the norm of `expected`; infinite for another shape."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-30))


torch.set_num_threads(1)
