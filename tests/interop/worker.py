"""One side of the exchange, in a process of its own: export the zoo, or run exported programs.

    python worker.py export ours|upstream FOLDER CASE...
    python worker.py run    ours|upstream FOLDER CASE...    runs every *.pte of the other commands

Runs under either package's interpreter and prints one JSON line per case:
{"case": ..., "from": ..., "error": null or text}. Prints before and after each case, so that a
crash is charged to the case it happened in.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def report(**row: object) -> None:
    print(json.dumps(row), flush=True)


def attempt(case: str, source: str, action: Callable[[], None]) -> None:
    report(case=case, **{"from": source}, error="crashed")
    try:
        action()
        error = None
    except Exception as e:
        error = f"{type(e).__name__}: {e}".strip().splitlines()
        error = " | ".join(line.strip() for line in error[:4])
    report(case=case, **{"from": source}, error=error)


def export_case(side: str, folder: Path, case: str) -> None:
    from models import zoo
    from models.export import export

    export(zoo.build(case), folder / f"{case}.{side}.pte")


def run_case(source: str, folder: Path, case: str) -> None:
    import torch
    from models import zoo

    from executorch.runtime import Runtime

    methods = zoo.build(case)
    program = Runtime.get().load_program(folder / f"{case}.{source}.pte")
    runs = torch.load(folder / f"{case}.pt", weights_only=True)
    for name, method in methods.items():
        loaded = program.load_method(name)
        assert loaded is not None
        for n, (inputs, expected) in enumerate(runs[name]):
            found = list(loaded.execute(inputs))
            if len(found) != len(expected):
                raise AssertionError(f"{len(found)} outputs, expected {len(expected)}")
            for i, (got, want) in enumerate(zip(found, expected, strict=True)):
                compare(method, f"{name}, input set {n}, output {i}", got, want)


def compare(method, where: str, got, want) -> None:
    import torch
    from models import zoo

    if not isinstance(want, torch.Tensor):
        if got != want:
            raise AssertionError(f"{where}: {got}, expected {want}")
        return
    rtol, atol = zoo.tolerance(method.roundings, want)
    torch.testing.assert_close(
        got, want, rtol=rtol, atol=atol, check_stride=False, msg=lambda text: f"{where}: {text}"
    )


def main(verb: str, side: str, folder: Path, cases: list[str]) -> None:
    warnings.simplefilter("ignore")
    sys.path.append(str(ROOT / "tests"))  # for `models`; the repository's root stays out of sight
    if side == "ours":
        sys.path.insert(0, str(ROOT))
    import executorch

    ours = str(ROOT / "executorch") in executorch.__path__
    if ours != (side == "ours"):
        raise SystemExit(f"interop: {side} found executorch in {list(executorch.__path__)}")
    for case in cases:
        if verb == "export":
            attempt(case, side, lambda case=case: export_case(side, folder, case))
            continue
        for pte in sorted(folder.glob(f"{case}.*.pte")):
            source = pte.name.split(".")[1]
            attempt(case, source, lambda s=source, c=case: run_case(s, folder, c))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
