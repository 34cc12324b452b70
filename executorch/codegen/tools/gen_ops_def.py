"""Write the operators that a program calls as yaml: a list of `- op: name` entries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from executorch.codegen.selection import exit_on_error, of_model


def dump_yaml(model_file: str, output_file: str) -> None:
    operators = sorted(of_model(Path(model_file)).kernels)
    Path(output_file).write_text(yaml.safe_dump([{"op": name} for name in operators]))


def main(args: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="gen_ops_def", description=__doc__)
    parser.add_argument("--output_path", required=True)
    parser.add_argument("--model_file_path", required=True)
    options = parser.parse_args(args)
    with exit_on_error(parser.prog):
        dump_yaml(options.model_file_path, options.output_path)


if __name__ == "__main__":
    main(sys.argv[1:])
