"""Merge two kernel yamls: the operators of the first, and those of the second it does not have."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from executorch.codegen.builtin import builtin_operators, is_builtin_yaml
from executorch.codegen.selection import exit_on_error, load_entries, operator_of


def merge(functions_yaml_path: str, fallback_yaml_path: str | None, output_dir: str) -> None:
    """Writes `output_dir`/merged.yaml. The yamls of this project's own kernels are made up from
    their tables."""
    merged: dict[str, Any] = {}
    for path in (functions_yaml_path, fallback_yaml_path):
        for entry in _entries(Path(path)) if path else ():
            merged.setdefault(operator_of(entry, Path(path or "")), entry)
    output = Path(output_dir) / "merged.yaml"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(yaml.safe_dump(list(merged.values()), sort_keys=False))


def _entries(path: Path) -> list[dict[str, Any]]:
    if not is_builtin_yaml(path) or path.exists():
        return load_entries(path)
    return [
        {
            "op": row.operator,
            "kernels": [
                {"arg_meta": None, "kernel_name": row.function.replace("::native::", "::")}
            ],
        }
        for row in builtin_operators().values()
    ]


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="merge_yaml", description=__doc__)
    parser.add_argument("--functions-yaml-path", "--functions_yaml_path", required=True)
    parser.add_argument("--fallback-yaml-path", "--fallback_yaml_path")
    parser.add_argument("--output_dir", required=True)
    with exit_on_error(parser.prog):
        merge(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    main(sys.argv[1:])
