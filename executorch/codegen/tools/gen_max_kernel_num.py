"""Write the number of kernels of a selection as a header, which sizes the table of kernels.

The number is EXECUTORCH_SELECTED_MAX_KERNEL_NUM. runtime/kernel/operator_registry.cpp, compiled by
`-include selected_max_kernel_num.h`, has a table of as many rows; MAX_KERNEL_NUM overrules it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from executorch.codegen.builtin import prim_operators
from executorch.codegen.selection import CodegenError, exit_on_error, load_yaml

_PRIM_OPS = re.compile(r"^static\s+Kernel\s+prim_ops\s*\[\]\s*=\s*\{(.*?)^\};", re.M | re.S)
_HEADER = "// Written by executorch.codegen.tools.gen_max_kernel_num.\n#pragma once\n"


def gen_max_kernel_num(
    oplist_yamls: Sequence[Path], prim_ops_source: Path | None, output_path: Path
) -> int | None:
    """Write the sum over all selections and the prim operators, and return it; None, and a header
    without a number, where a selection includes all operators.

    prim_ops_source  a file with an array `static Kernel prim_ops[]`; None: this project's own
    A header that says so already is left as it is.
    """
    counts = [_count_yaml_kernels(path) for path in oplist_yamls]
    if any(count is None for count in counts):
        text = "// A selection opted into all operators: the table has its usual size.\n"
        total = None
    else:
        prim_ops = _count_prim_ops(prim_ops_source) if prim_ops_source else len(prim_operators())
        total = prim_ops + sum(count for count in counts if count is not None)
        text = f"#define EXECUTORCH_SELECTED_MAX_KERNEL_NUM {total}\n"
    if not output_path.exists() or output_path.read_text() != _HEADER + text:
        output_path.parent.mkdir(parents=True, exist_ok=True)
        output_path.write_text(_HEADER + text)
    return total


def _count_prim_ops(prim_ops_source: Path) -> int:
    found = _PRIM_OPS.search(prim_ops_source.read_text(encoding="utf-8"))
    count = len(re.findall(r"\bKernel\s*\(", found[1])) if found else 0
    if count == 0:
        raise CodegenError(
            f"{prim_ops_source}: expected `static Kernel prim_ops[] = {{` with entries, "
            f"found {'none in it' if found else 'no such array'}"
        )
    return count


def _count_yaml_kernels(yaml_path: Path) -> int | None:
    """One for each kernel key, and for each operator without keys; None for all operators."""
    content: Any = load_yaml(yaml_path) or {}
    if not isinstance(content, dict):
        raise CodegenError(f"{yaml_path}: no selection of operators")
    operators = content.get("operators") or {}
    if content.get("include_all_operators") or any(
        (entry or {}).get("include_all_overloads") for entry in operators.values()
    ):
        return None
    keys = content.get("et_kernel_metadata") or {}
    return sum(max(len(keys.get(op) or ()), 1) for op in operators.keys() | keys.keys())


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="gen_max_kernel_num", description=__doc__)
    parser.add_argument("--oplist-yaml", "--oplist_yaml", action="append", required=True, type=Path)
    parser.add_argument("--prim-ops-source", "--prim_ops_source", type=Path)
    parser.add_argument("--output-path", "--output_path", required=True, type=Path)
    args = parser.parse_args(argv)
    with exit_on_error(parser.prog):
        gen_max_kernel_num(args.oplist_yaml, args.prim_ops_source, args.output_path)


if __name__ == "__main__":
    main(sys.argv[1:])
