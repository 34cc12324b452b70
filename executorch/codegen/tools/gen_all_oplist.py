"""Merge selections of operators into one, selected_operators.yaml."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from executorch.codegen.selection import LINEAR, CodegenError, Selection, exit_on_error

SELECTED = "selected_operators.yaml"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="gen_all_oplist", description=__doc__)
    folder = "the folder of selected_operators.yaml"
    parser.add_argument("--output-dir", "--output_dir", type=Path, required=True, help=folder)
    parser.add_argument(
        "--model-file-list-path",
        "--model_file_list_path",
        required=True,
        help="a selection's yaml, or @FILE with the path of one, or of its folder, per line",
    )
    ignored = ("--allow-include-all-overloads", "--allow_include_all_overloads")
    parser.add_argument(
        *ignored, action="store_true", help=argparse.SUPPRESS
    )  # upstream's, without effect
    parser.add_argument(
        "--check-ops-not-overlapping",
        "--check_ops_not_overlapping",
        action="store_true",
        help="an operator that two selections name is an error",
    )
    args = parser.parse_args(argv)
    listed = args.model_file_list_path
    with exit_on_error(parser.prog):
        paths = Path(listed[1:]).read_text().split() if listed.startswith("@") else [listed]
        merged = Selection()
        for path in map(Path, paths):
            other = Selection.load(path / SELECTED if path.is_dir() else path)
            # LINEAR comes with different products.
            twice = sorted((merged.kernels.keys() & other.kernels.keys()) - {LINEAR})
            if args.check_ops_not_overlapping and twice:
                raise CodegenError(f"{path}: selected before: {', '.join(twice)}")
            merged.merge(other)
        merged.save(args.output_dir / SELECTED)


if __name__ == "__main__":
    main(sys.argv[1:])
