"""Models that a command line names, the status that a command shows, and how it ends."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def named(spec: str) -> Callable[..., Any]:
    """The function behind `file.py:function` or `package.module:function`.

    Raises ValueError naming what is missing.
    """
    function = object_named(spec)
    if not callable(function):
        raise ValueError(f"{spec} is no function")
    return function  # type: ignore[no-any-return]


def object_named(spec: str) -> Any:
    """The object behind `file.py:name` or `package.module:name`.

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
    if not hasattr(module, name):
        raise ValueError(f"{place} has no function {name!r}")
    return getattr(module, name)


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
def show_status() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done, on stderr: in place on a terminal, else in lines."""
    if not sys.stderr.isatty():
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    from rich.console import Console

    with Console(stderr=True).status("load") as status:
        yield lambda text: status.update(text)


def end_of(command: str, run: Callable[[], tuple[str, int]]) -> int:
    """The exit status of a command, after printing the text that `run` returns beside it. 2 where
    the one or the other fails, with the cause on stderr; 130, as a shell says it, after Ctrl-C."""
    try:
        text, status = run()
        try:
            print(text, flush=True)
        except OSError as error:
            # What is left of the text would fail once more when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
                return status
            raise OSError(f"cannot write to the standard output: {error.strerror}") from error
        return status
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(f"{command}: {error}", file=sys.stderr)
        return 2
