"""Export a language model.

    python -m executorch.extension.llm.export.export_llm --config llm.yaml [NAME=VALUE ...]
    python -m executorch.extension.llm.export.export_llm base.model_class=llama3_2 \\
        base.checkpoint=consolidated.00.pth base.params=params.json model.use_kv_cache=True \\
        model.use_sdpa_with_kv_cache=True quantization.qmode=8da4w backend.xnnpack.enabled=True

Settings are those of `LlmConfig`.
"""

from __future__ import annotations

import argparse
import logging
import sys

from executorch.extension.llm.export.config.llm_config import LlmConfig
from executorch.extension.llm.export.config.settings import load_config


def parse_config_arg() -> tuple[str | None, list[str]]:
    """The file of --config, and the other arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", help="YAML of settings")
    args, others = parser.parse_known_args()
    options = [a for a in others if a.startswith("-")]
    if options:
        parser.error(f"unknown option {options[0]}; settings read group.name=value")
    return args.config, others


def export_llm(llm_config: LlmConfig) -> str:
    """Exports and saves; the file's name."""
    from executorch.examples.models.llama.export_llama_lib import export_llama

    return export_llama(llm_config)


def hydra_main(llm_config: LlmConfig) -> None:
    export_llm(llm_config)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    file, settings = parse_config_arg()
    try:
        config = load_config(file, settings)
        if config.debug.verbose:
            logging.getLogger("executorch").setLevel(logging.DEBUG)
        export_llm(config)
    except (ValueError, OSError) as e:
        sys.exit(f"export_llm: {e}")


if __name__ == "__main__":
    main()
