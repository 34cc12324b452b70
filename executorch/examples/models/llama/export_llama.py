"""`python -m executorch.examples.models.llama.export_llama`: the older command."""

from __future__ import annotations

import sys

from executorch.examples.models.llama.export_llama_lib import build_args_parser, export_llama


def main() -> int:
    parser = build_args_parser()
    options = parser.parse_args()
    try:
        export_llama(options)
    except (ValueError, OSError) as e:
        parser.exit(2, f"export_llama: {e}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
