"""python -m executorch.devtools.parity PROGRAM MODEL: compare a program with its model."""

from __future__ import annotations

import argparse
import sys

from executorch.devtools.parity.example import end_of, example_of, show_status

_EPILOG = """\
MODEL names a function without parameters that returns (model, inputs) or
(model, inputs, dynamic_shapes): `file.py:function` or `package.module:function`.

example:
  python -m executorch.devtools.parity nanogpt.pte export_nanogpt.py:example

exit status: 0 the outputs agree, 1 they differ, 2 the comparison could not be made
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m executorch.devtools.parity",
        description="Replay a program in the C++ runtime against eager PyTorch, on real inputs and "
        "on the boundary sizes of every dynamic dimension; name the first operator that is wrong.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", help="a .pte file, of this exporter or upstream's")
    parser.add_argument("model", metavar="MODEL", help="file.py:function, see below")
    parser.add_argument("--method", default="forward", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)

    def run() -> tuple[str, int]:
        from executorch.devtools.parity.check import check_parity

        with show_status() as progress:
            model, inputs, shapes = example_of(options.model)
            report = check_parity(
                options.program,
                model,
                inputs,
                dynamic_shapes=shapes,
                method=options.method,
                progress=progress,
            )
        return report.to_json() if options.json else str(report), 0 if report.passed else 1

    return end_of(parser.prog, run)


if __name__ == "__main__":
    sys.exit(main())
