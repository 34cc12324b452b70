"""Write selected_op_variants.h, which tells kernels what a selection asks them for.

The header defines should_include_kernel_dtype("add.out", ScalarType::Float), a constant expression
that kernels of the user's may branch on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from executorch.codegen.selected_types import mask_of, names_of
from executorch.codegen.selection import Selection, exit_on_error

_HEADER = """// Written by executorch.codegen.tools.gen_selected_op_variants.
#pragma once

#include <executorch/runtime/core/portable_type/scalar_type.h>

#include <cstdint>
#include <string_view>

/// Whether the selection has this operator, named without its namespace, for this type.
inline constexpr bool should_include_kernel_dtype(const char* operator_name,
                                                  executorch::aten::ScalarType scalar_type) {{
  [[maybe_unused]] const std::string_view name(operator_name);
  [[maybe_unused]] const auto type = static_cast<unsigned>(scalar_type);
{rows}  return {default};
}}
"""


def write_selected_op_variants(yaml_file_path: str, output_dir: str) -> None:
    selection = Selection.load(Path(yaml_file_path))
    rows = []
    for operator in sorted(selection.kernels):
        name = operator.split("::")[-1]
        mask = mask_of(selection, operator)
        rows.append(
            f'  if (name == "{name}") return (uint64_t{{{mask:#x}u}} >> type & 1) != 0;'
            f"  // {names_of(mask)}\n"
        )
    text = _HEADER.format(
        rows="".join(rows) if not selection.include_all else "",
        default="true" if selection.include_all else "false",
    )
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "selected_op_variants.h").write_text(text)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="gen_selected_op_variants", description=__doc__)
    parser.add_argument("--yaml-file-path", "--yaml_file_path", required=True)
    parser.add_argument("--output-dir", "--output_dir", required=True)
    with exit_on_error(parser.prog):
        write_selected_op_variants(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    main(sys.argv[1:])
