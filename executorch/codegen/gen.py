"""Write the C++ that registers a choice of kernels.

Into the install folder:
  RegisterCodegenUnboxedKernelsEverything.cpp  the registration, before main()
  NativeFunctions.h, CustomOpsNativeFunctions.h  declarations of the user's kernels
  Functions.h                                    both
A built-in operator that is not selected is not referenced, so that the linker drops it.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from executorch.codegen.builtin import (
    Builtin,
    builtin_operators,
    is_builtin_yaml,
    prim_operators,
)
from executorch.codegen.kernel_yaml import Kernel, parse_kernel_yaml
from executorch.codegen.selected_types import ALL, mask_of, names_of
from executorch.codegen.selection import DEFAULT, LINEAR, CodegenError, Selection

REGISTRATION = "RegisterCodegenUnboxedKernelsEverything.cpp"
# Linked whole or not at all: backend, or namespace of operators -> the symbol that pulls its
# registration into a program.
_WHOLE = {
    "XnnpackBackend": "et_xnnpack_backend_registered",
    "llama": "et_llm_ops_registered",
    "preprocess": "et_llm_ops_registered",
}

_HEADER = """// Written by executorch.codegen.gen.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>
{includes}
#include <tuple>
{declarations}"""

_SOURCE = """// Written by executorch.codegen.gen.
#include "Functions.h"

#include <executorch/kernels/portable/own_kernels.h>
#include <executorch/runtime/platform/log.h>
{includes}
namespace {{

using executorch::runtime::boxed;
using executorch::runtime::Kernel;
using executorch::runtime::KernelKey;
using torch::executor::native::boxed_for_types;
using torch::executor::native::SelectedOperator;

{tables}
int add_all() {{
{body}  return 1;
}}

}}  // namespace

extern "C" int {symbol};
int {symbol} = add_all();
{whole}"""

_ADD_OWN = """  static torch::executor::native::OwnKernels own{{kOwnKernels}};
  register_own_kernels(own, "{library}");
"""
_ADD = """  const auto error = executorch::runtime::register_kernels(kKernels, "{library}");
  if (error != executorch::runtime::Error::Ok) {{
    ET_LOG(Error, "{library}: registration failed: %s", executorch::runtime::to_string(error));
  }}
"""


def symbol_of(library: str) -> str:
    """The C symbol that pulls the registration into a program; see gen_operators_lib()."""
    return f"et_registered_{re.sub(r'[^A-Za-z0-9]', '_', library)}"


def generate(
    folder: Path,
    library: str,
    selection: Selection,
    functions_yaml: Path | None = None,
    custom_ops_yaml: Path | None = None,
    for_types: bool = False,
    link_whole: bool = False,
) -> dict[Path, str]:
    """The files to write. Raises CodegenError when a selected operator has no kernel.

    for_types   our kernels refuse tensors of types that the selection does not name
    link_whole  the backends of the selection are linked, and the operators of language models
                where it names one
    """
    whole: dict[str, str] = {}
    if link_whole:
        whole = {op: _WHOLE[ns] for op in selection.kernels if (ns := op.split("::")[0]) in _WHOLE}
        whole |= {name: _WHOLE[name] for name in selection.backends & set(_WHOLE)}
    functions: list[Kernel] = []
    builtin = functions_yaml is None and custom_ops_yaml is None
    if functions_yaml is not None:
        builtin = is_builtin_yaml(functions_yaml)
        functions = [] if builtin else parse_kernel_yaml(functions_yaml)
        # Lines that name our own kernels are what upstream's merge_yaml leaves of its lists.
        ours = {k for k in functions if _is_ours(k)}
        functions = [k for k in functions if k not in ours and selection.selects(k.operator)]
    else:
        ours = set()
    custom = parse_kernel_yaml(custom_ops_yaml) if custom_ops_yaml is not None else []
    custom = [k for k in custom if selection.selects(k.operator)]
    replaced = {k.operator for k in [*functions, *custom] if k.key == DEFAULT}
    known = builtin_operators()
    layers = {LINEAR} & selection.kernels.keys()  # upstream's list of portable kernels lacks it
    names = set(known) if builtin else {k.operator for k in ours} | layers
    rows = [known[n] for n in sorted(names - replaced) if selection.selects(n)]
    found = {r.operator for r in rows} | replaced | set(whole)
    _check_complete(selection, found, functions + custom)
    own = [_own_row(r, mask_of(selection, r.operator) if for_types else ALL) for r in rows]
    tables = "".join(declared for declared, _ in own)
    tables += _table("kOwnKernels", [row for _, row in own])
    tables += _table("kKernels", [_row(k) for k in [*functions, *custom]])
    includes = "".join(f"#include <{h}>\n" for h in sorted({r.header for r in rows}))
    body = (_ADD_OWN if rows else "") + (_ADD if functions or custom else "")
    source = _SOURCE.format(
        includes=includes,
        tables=tables,
        body=body.format(library=library),
        symbol=symbol_of(library),
        whole="".join(map(_reference, sorted(set(whole.values())))),
    )
    both = '#include "CustomOpsNativeFunctions.h"\n#include "NativeFunctions.h"\n'
    return {
        folder / REGISTRATION: source,
        folder / "NativeFunctions.h": _declare(functions),
        folder / "CustomOpsNativeFunctions.h": _declare(custom),
        folder / "Functions.h": _HEADER.format(includes=both, declarations=""),
    }


def _reference(symbol: str) -> str:
    return f'extern "C" int {symbol};\n[[gnu::used]] static int* const uses_{symbol} = &{symbol};\n'


def _is_ours(kernel: Kernel) -> bool:
    row = builtin_operators().get(kernel.operator)
    return row is not None and f"{kernel.namespace}::{kernel.name}" == row.function


def _check_complete(selection: Selection, found: set[str], kernels: list[Kernel]) -> None:
    found = found | {k.operator for k in kernels} | prim_operators()
    missing = sorted(set(selection.kernels) - found)
    if missing:
        asked = {s for op in missing for s in selection.sources[op]} - {"None"}
        by = f" (asked for by {', '.join(sorted(asked))})" if asked else ""
        raise CodegenError(f"no kernel for {', '.join(missing)}{by}")


def _table(name: str, rows: list[str]) -> str:
    lines = "".join(f"    {row},\n" for row in rows)
    return f"constexpr Kernel {name}[] = {{\n{lines}}};\n" if rows else ""


def _own_row(row: Builtin, types: int) -> tuple[str, str]:
    """What stands before the table, and the row."""
    if types == ALL:
        return "", f'Kernel("{row.operator}", boxed<&{row.function}>)'
    name = "k_" + re.sub(r"\W+", "_", row.operator)
    declared = (
        f'constexpr SelectedOperator {name}{{"{row.operator}", {types:#x}u}};  '
        f"// {names_of(types)}\n"
    )
    return declared, f'Kernel("{row.operator}", boxed_for_types<&{row.function}, {name}>)'


def _row(kernel: Kernel) -> str:
    key = "" if kernel.key == DEFAULT else f'KernelKey("{kernel.key}"), '
    return f'Kernel("{kernel.operator}", {key}boxed<&{kernel.namespace}::{kernel.name}>)'


def _declare(kernels: list[Kernel]) -> str:
    uses_builtin = any(k.declaration.startswith("decltype") for k in kernels)
    headers = sorted({r.header for r in builtin_operators().values()}) if uses_builtin else []
    text = ""
    for namespace in dict.fromkeys(k.namespace for k in kernels):
        lines = dict.fromkeys(k.declaration for k in kernels if k.namespace == namespace)
        text += f"\nnamespace {namespace} {{\nusing namespace ::executorch::aten;\n"
        text += "using ::executorch::runtime::KernelRuntimeContext;\n"
        text += "\n".join(lines) + f"\n}}  // namespace {namespace}\n"
    includes = "".join(f"#include <{h}>\n" for h in headers)
    return _HEADER.format(includes=includes, declarations=text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m executorch.codegen.gen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    for names, text in (
        ("--functions-yaml-path --functions_yaml_path", "kernel yaml of ATen operators"),
        ("--custom-ops-yaml-path --custom_ops_yaml_path", "kernel yaml of a user's own operators"),
        ("--op-selection-yaml-path --op_selection_yaml_path", "the selection; default: all"),
        ("-o --output-dependencies --output_dependencies", "write the list of files here"),
    ):
        add(*names.split(), type=Path, metavar="FILE", help=text)
    add("--op-registration-whitelist", "--op_registration_whitelist", nargs="*", metavar="OPERATOR",
        help="select these operators instead, such as aten::add.out")  # fmt: skip
    add("-d", "--install-dir", "--install_dir", type=Path, default=Path(), metavar="FOLDER",
        help="the folder to write into; default: this one")  # fmt: skip
    add("--lib-name", default="selected_operators", help="the library's name in messages")
    add("--dtype-selective-build", action="store_true",
        help="kernels refuse types that are not selected")  # fmt: skip
    add("--link-whole", action="store_true", help="link the backends of the selection, too")
    add("--dry-run", action="store_true", help="write only the list of files")
    add("--generate", nargs="*", choices=["headers", "sources"], help="default: both")
    # Of upstream's templates and ATen build, which do not exist here.
    for ignored in ("-s --source-path --source_path", "--tags-path --tags_path"):
        add(*ignored.split(), help=argparse.SUPPRESS)
    add("--aten-yaml-path", "--aten_yaml_path", help=argparse.SUPPRESS)
    add("--add-exception-boundary", "--add_exception_boundary", action="store_true",
        help=argparse.SUPPRESS)  # fmt: skip
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        selection = Selection(include_all=True)
        if args.op_selection_yaml_path is not None:
            selection = Selection.load(args.op_selection_yaml_path)
        if args.op_registration_whitelist:
            selection = Selection()
            for operator in args.op_registration_whitelist:
                selection.add(operator)
            selection.add_linear()
        yamls = (args.functions_yaml_path, args.custom_ops_yaml_path)
        files = generate(
            args.install_dir,
            args.lib_name,
            selection,
            *yamls,
            args.dtype_selective_build,
            args.link_whole,
        )
    except CodegenError as e:
        print(f"gen: {e}", file=sys.stderr)
        return 1
    wanted = args.generate or ["headers", "sources"]
    files = {
        p: text
        for p, text in files.items()
        if ("headers" if p.suffix == ".h" else "sources") in wanted
    }
    if args.output_dependencies is not None:
        args.output_dependencies.parent.mkdir(parents=True, exist_ok=True)
        args.output_dependencies.write_text(";".join(p.as_posix() for p in files))
    if not args.dry_run:
        args.install_dir.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
