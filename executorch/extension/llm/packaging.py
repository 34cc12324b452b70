"""Put a tokenizer into a program, so that one file is the whole model.

python -m executorch.extension.llm.packaging model.pte --tokenizer tokenizer.json

from executorch.extension.llm.packaging import with_tokenizer
Path("whole.pte").write_bytes(with_tokenizer(program.buffer, "tokenizer.json"))
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._serialize._program import deserialize_pte_binary, serialize_pte_binary

_CACHE_LINE = 64
# What lies beside a tokenizer's file, and the key under which a runner looks for it.
_BESIDE = {
    "merges.txt": "tokenizer_merges",
    "tokenizer_config.json": "tokenizer_config",
    "chat_template.jinja": "chat_template",
}


def tokenizer_data(tokenizer: str | Path, *, chat_template: str | None = None) -> dict[str, bytes]:
    """Named data of a program that carries the tokenizer: its file, and merges.txt,
    tokenizer_config.json and chat_template.jinja beside it.

    `chat_template` is Jinja text or a template's name (`executorch chat --help`), and goes before
    the last of these. OSError if a file cannot be read.
    """
    path = Path(tokenizer)
    try:
        data = {"tokenizer": path.read_bytes()}
    except OSError as error:
        raise type(error)(
            f"tokenizer: cannot read {path} ({error.strerror}); expected a tokenizer's file, such "
            "as tokenizer.json, tokenizer.model or vocab.json"
        ) from error
    for name, key in _BESIDE.items():
        if path.name != name and (path.parent / name).is_file():
            data[key] = (path.parent / name).read_bytes()
    if chat_template is not None:
        data["chat_template"] = chat_template.encode()
    return data


def with_tokenizer(
    program: bytes, tokenizer: str | Path, *, chat_template: str | None = None
) -> bytes:
    """A copy of a program (.pte) with `tokenizer_data` among its named data.

    A tokenizer that is in the program already is replaced. ValueError for bytes that are no
    program; OSError if a file cannot be read.
    """
    added = tokenizer_data(tokenizer, chat_template=chat_template)
    file = deserialize_pte_binary(bytes(program))
    store = NamedDataStore()
    for key, data in added.items():
        store.add_named_data(key, data)
    if file.named_data is not None:
        # How they were aligned is not in the file; weights of delegates want whole cache lines.
        kept = {
            key: replace(entry, alignment=_CACHE_LINE)
            for key, entry in file.named_data.pte_data.items()
            if key not in {"tokenizer", "chat_template", *_BESIDE.values()}
        }
        store.merge_named_data_store(replace(file.named_data, pte_data=kept))
    file.named_data = store.get_named_data_store_output()
    return bytes(
        serialize_pte_binary(
            file,
            extract_delegate_segments=True,
            constant_tensor_alignment=_CACHE_LINE,
            delegate_alignment=_CACHE_LINE,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path, help="a .pte file")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer's file")
    parser.add_argument("--chat-template", help="a template's name, or Jinja text")
    parser.add_argument("-o", "--output", type=Path, help="default: replace the program")
    args = parser.parse_args()
    output = args.output or args.program
    data = with_tokenizer(
        args.program.read_bytes(), args.tokenizer, chat_template=args.chat_template
    )
    partial = output.with_name(output.name + ".partial")
    partial.write_bytes(data)
    partial.replace(output)
    print(f"{output}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
