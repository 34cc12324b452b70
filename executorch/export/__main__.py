"""python -m executorch.export MODEL: a program, and what it is worth."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from executorch.devtools.parity.example import example_of, named, show_status

_EPILOG = """\
MODEL names a function without parameters that returns (model, inputs) or
(model, inputs, dynamic_shapes): `file.py:function` or `package.module:function`.

examples:
  python -m executorch.export model.py:example -o model.pte
  python -m executorch.export model.py:example --quantize int8 --evaluate model.py:loss --parity
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m executorch.export",
        description="Export a model to a program; print its size, speed and quality.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="file.py:function")
    parser.add_argument("-o", "--output", default="model.pte", help="default: %(default)s")
    parser.add_argument("--quantize", choices=["int8", "int4"])
    parser.add_argument("--backend", choices=["xnnpack"])
    parser.add_argument(
        "--evaluate",
        metavar="FILE:FUNCTION",
        help="a function that takes a callable model and returns a figure, such as a loss",
    )
    parser.add_argument("--parity", action="store_true", help="then check it against the model")
    parser.add_argument("--etrecord", metavar="FILE", help="write an ETRecord as well")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON object")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    logging.getLogger().setLevel(logging.ERROR)
    try:
        with show_status() as progress:
            result, passed = _run(options, progress)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(result) if options.json else result["text"])
    return 0 if passed else 1


def _run(
    options: argparse.Namespace, progress: Callable[[str], None]
) -> tuple[dict[str, Any], bool]:
    from tabulate import tabulate

    from executorch.devtools.parity import check_parity
    from executorch.export import export
    from executorch.export.measure import measure

    model, inputs, shapes = example_of(options.model)
    first = inputs if isinstance(inputs, tuple) else inputs[0]
    evaluate = named(options.evaluate) if options.evaluate else None
    progress(f"export {options.model}")
    session = export(
        model,
        inputs,
        dynamic_shapes=shapes,
        generate_etrecord=options.etrecord is not None,
        quantize=options.quantize,
        backend=options.backend,
    )
    session.save_to_pte(options.output)
    if options.etrecord:
        session.get_etrecord().save(options.etrecord)
    progress("measure")
    program = session.get_pte_buffer()
    figures = measure(program, model, first, evaluate=evaluate)
    result: dict[str, Any] = {"output": options.output, **asdict(figures)}
    text = tabulate(figures.rows(), headers=[Path(options.output).name, "program", "model"])
    passed = True
    if options.parity:
        # Quantization changes the model on purpose: the gate asks whether the program is the
        # quantized model.
        report = check_parity(
            program,
            session.get_exported_program(),
            inputs,
            before_quantization=model if options.quantize else None,
            progress=progress,
        )
        passed = report.passed
        result["parity"] = json.loads(report.to_json())
        text += f"\n\n{report}"
    return (result if options.json else {"text": text}), passed


if __name__ == "__main__":
    sys.exit(main())
