"""python -m executorch.devtools.parity PROGRAM MODEL: the program against the model it is of."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

_EPILOG = """\
MODEL names a function without parameters that returns (model, inputs) or
(model, inputs, dynamic_shapes): `file.py:function` or `package.module:function`.

example:
  python -m executorch.devtools.parity nanogpt.pte export_nanogpt.py:example

exit status: 0 the outputs agree, 1 they differ, 2 the comparison could not be made
"""


def named(spec: str) -> Callable[..., Any]:
    """The function behind `file.py:function` or `package.module:function`.

    Raises ValueError naming what is missing.
    """
    place, colon, name = spec.rpartition(":")
    if not colon:
        raise ValueError(f"{spec!r}: expected file.py:function or module:function")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise ValueError(f"{place}: no such file")
        sys.path.insert(0, str(Path(place).resolve().parent))
        found = importlib.util.spec_from_file_location(Path(place).stem, place)
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[found.name] = module
        found.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{place} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def example_of(spec: str) -> tuple[Any, Any, Any]:
    """The model, its inputs and dynamic shapes that the function behind `spec` returns."""
    result = named(spec)()
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise ValueError(
            f"{spec}: expected (model, inputs[, dynamic_shapes]), found {result!r:.80}"
        )
    model, inputs, shapes = (*result, None)[:3]
    return model, inputs if isinstance(inputs, (tuple, list)) else (inputs,), shapes


@contextmanager
def show_status() -> Any:
    from rich.console import Console

    with Console(stderr=True).status("load") as status:
        yield lambda text: status.update(text)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m executorch.devtools.parity",
        description="Replay a program in the C++ runtime against eager PyTorch, on real inputs and "
        "on the boundary sizes of every dynamic dimension; name the first operator that is wrong.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", help="a .pte file, of this exporter or upstream's")
    parser.add_argument("model", help="file.py:function")
    parser.add_argument("--method", default="forward")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    options = parser.parse_args(arguments)

    from executorch.devtools.parity.check import check_parity

    shown: AbstractContextManager[Callable[[str], None]]
    shown = show_status() if sys.stderr.isatty() else nullcontext(lambda text: None)
    try:
        with shown as progress:
            model, inputs, shapes = example_of(options.model)
            report = check_parity(
                options.program,
                model,
                inputs,
                dynamic_shapes=shapes,
                method=options.method,
                progress=progress,
            )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(report.to_json() if options.json else report)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
