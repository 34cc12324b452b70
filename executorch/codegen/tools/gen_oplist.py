"""Write the yaml that says which operators a build has: from names, a kernel yaml or a program."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from executorch.codegen.selection import CodegenError, Selection, exit_on_error, of_model


def gen_oplist(
    output_path: Path | str,
    model_file_path: str | None = None,
    ops_schema_yaml_path: str | None = None,
    root_ops: str | None = None,
    ops_dict: str | None = None,
    include_all_operators: bool = False,
) -> None:
    """Each source adds to the selection; several models or yaml files are separated by commas. A
    model is all that its program calls; products of the other sources bring linear layers.

    root_ops   comma list of operators, aten::add.out,my_ops::scale.out
    ops_dict   JSON: operator -> list of kernel keys
    """
    selection = Selection(include_all=include_all_operators)
    if include_all_operators:
        selection.save(Path(output_path))
        return
    for schema in _split(ops_schema_yaml_path):
        selection.merge(Selection.load(Path(schema)))
    if root_ops and root_ops.strip():
        for operator in root_ops.strip().removesuffix(",").split(","):
            selection.add(_operator("--root_ops", operator.strip()))
    for operator, keys in _keys_by_operator(ops_dict).items():
        selection.add(_operator("--ops_dict", operator), set(keys or ()))
    selection.add_linear()
    for model in _split(model_file_path):
        selection.merge(of_model(Path(model)))
    if not selection.kernels and not selection.backends:
        raise CodegenError("no operator is selected; give a model, a yaml, names, or all")
    selection.save(Path(output_path))


def _operator(option: str, name: str) -> str:
    if not re.fullmatch(r"(\w+::)?\w+(\.\w+)?", name):
        raise CodegenError(f"{option}: expected an operator such as aten::add.out, found {name!r}")
    return name


def _keys_by_operator(text: str | None) -> dict[str, list[str] | None]:
    try:
        found = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise CodegenError(f"--ops_dict is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise CodegenError(f"--ops_dict: expected {{operator: [kernel keys]}}, found {text}")
    return found


def _split(text: str | None) -> Iterator[str]:
    return (part.strip() for part in (text or "").split(",") if part.strip())


def main(args: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="gen_oplist", description=__doc__)
    parser.add_argument("--output_path", required=True, help="the yaml to write")
    parser.add_argument("--model_file_path", help="programs (.pte), separated by commas")
    yamls = "kernel or selection yaml files, separated by commas"
    parser.add_argument("--ops_schema_yaml_path", help=yamls)
    parser.add_argument("--root_ops", help="operators, separated by commas: aten::add.out,...")
    parser.add_argument("--ops_dict", help="JSON: operator -> list of kernel keys")
    everything = ("--include-all-operators", "--include_all_operators")
    parser.add_argument(*everything, action="store_true", help="select all")
    with exit_on_error(parser.prog):
        gen_oplist(**vars(parser.parse_args(args)))


if __name__ == "__main__":
    main(sys.argv[1:])
