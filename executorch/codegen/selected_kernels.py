"""Write sources that compile our kernels once more, for the element types of a selection only:
python -m executorch.codegen.selected_kernels --op-selection-yaml-path YAML -d FOLDER SOURCE...

For each source of executorch/kernels, FOLDER has a file of the same path:
  a family      for the types of its selected operators; nothing where none is selected
  what they share, where it depends on types: for those of all selected operators
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from executorch.codegen.builtin import KERNELS, builtin_operators
from executorch.codegen.selected_types import mask_of, names_of, with_computed
from executorch.codegen.selection import Selection, exit_on_error

_ROW = re.compile(r'\bET_OP\(\s*"([^"]+)"')
_DEPENDS_ON_TYPE = re.compile(r"\bwith_(dtype|compute|float_compute)\(")

_SOURCE = """// Written by executorch.codegen.selected_kernels.
#define ET_SELECTED_TYPES {mask:#x}u  // {names}
#include <executorch/kernels/{path}>
"""


def text_of(source: Path, selection: Selection) -> str:
    """The file that stands for `source`."""
    text = source.read_text(encoding="utf-8")
    operators = _ROW.findall(text)
    if operators:
        chosen = [op for op in operators if selection.selects(op)]
        mask = _union(selection, chosen)
    elif _DEPENDS_ON_TYPE.search(text):
        mask = with_computed(
            _union(selection, [op for op in builtin_operators() if selection.selects(op)])
        )
    else:
        mask = 0
    if not mask:
        return "// No kernel of this file is selected.\n"
    path = source.relative_to(KERNELS).as_posix()
    return _SOURCE.format(mask=mask, names=names_of(mask), path=path)


def _union(selection: Selection, operators: list[str]) -> int:
    mask = 0
    for operator in operators:
        mask |= mask_of(selection, operator)
    return mask


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op-selection-yaml-path", type=Path, required=True)
    parser.add_argument("-d", "--install-dir", type=Path, required=True)
    parser.add_argument("sources", type=Path, nargs="+")
    args = parser.parse_args(argv)
    with exit_on_error("selected_kernels"):
        selection = Selection.load(args.op_selection_yaml_path)
        for source in args.sources:
            source = source.resolve()
            written = args.install_dir / source.relative_to(KERNELS)
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text_of(source, selection))


if __name__ == "__main__":
    main(sys.argv[1:])
