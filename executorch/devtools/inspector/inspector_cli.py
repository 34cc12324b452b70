"""`python -m executorch.devtools.inspector.inspector_cli`: print what an ETDump recorded."""

from __future__ import annotations

import argparse
import sys

from executorch.devtools.inspector import Inspector, TimeScale, compare_results

_EXAMPLE = """example:
  python -m executorch.devtools.inspector.inspector_cli \\
      --etdump_path etdump.etdp --etrecord_path etrecord.bin --target_time_scale us
"""


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m executorch.devtools.inspector.inspector_cli",
        description="Print the events of an ETDump as a table.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scales = [scale.value for scale in TimeScale]
    parser.add_argument("--etdump_path", required=True, help="the ETDump file")
    parser.add_argument(
        "--etrecord_path", help="the ETRecord of the program, which names operators"
    )
    parser.add_argument("--debug_buffer_path", help="the file of recorded values")
    parser.add_argument(
        "--source_time_scale", choices=scales, default="ns", help="unit of the dump"
    )
    parser.add_argument(
        "--target_time_scale", choices=scales, default="ms", help="unit of the table"
    )
    parser.add_argument("--tsv_path", help="also write the table to this file, tab-separated")
    parser.add_argument(
        "--compare_results",
        action="store_true",
        help="also compare recorded outputs with the ETRecord's reference outputs",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    args = parse_args(arguments)
    try:
        inspector = Inspector(
            etdump_path=args.etdump_path,
            etrecord=args.etrecord_path,
            debug_buffer_path=args.debug_buffer_path,
            source_time_scale=TimeScale(args.source_time_scale),
            target_time_scale=TimeScale(args.target_time_scale),
        )
        inspector.print_data_tabular()
        if args.tsv_path:
            with open(args.tsv_path, "w") as file:
                inspector.save_data_to_tsv(file)
        if args.compare_results:
            for block in inspector.event_blocks:
                if block.reference_output is not None and block.run_output:
                    compare_results(block.reference_output, block.run_output)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"inspector_cli: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
