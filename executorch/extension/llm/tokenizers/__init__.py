"""Text to tokens and back, for the files of all common tokenizers.

>>> tokenizer = get_tokenizer("tokenizer.json")
>>> tokenizer.decode(tokenizer.encode("Hello", bos=1), skip_special_tokens=True)
'Hello'
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from executorch.extension.llm.tokenizers._tokenizers import (
    StreamDecoder,
    Tokenizer,
    load_bytes,
    load_file,
)

__all__ = ["StreamDecoder", "Tokenizer", "get_tokenizer", "load_bytes", "load_file"]


def get_tokenizer(
    tokenizer_path: str | PathLike[str], tokenizer_config_path: str | PathLike[str] | None = None
) -> Tokenizer:
    """The tokenizer of a file or folder, whatever its kind.

    `tokenizer_config_path` names a tokenizer_config.json that does not lie beside the file.
    Raises ValueError, with the reason for each kind, where it is no tokenizer.
    """
    if tokenizer_config_path is None:
        return load_file(fspath(tokenizer_path))
    path = Path(tokenizer_path)
    merges = path.with_name("merges.txt")
    return load_bytes(
        path.read_bytes(),
        merges=merges.read_bytes() if merges.exists() else b"",
        config=Path(tokenizer_config_path).read_bytes(),
    )
