"""Write small valid texts and sounds for the readers of text_fuzz: a folder for each of them.

python -m tests.fuzz.text_seeds FOLDER
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.chat_templates.families import FAMILIES
from tests.chat_templates.generated import Templates

WORDS = ["a", "b", "ab", "abab", "h", "e", "l", "o", "he", "ll", "hell", "hello", "w", "r", "d"]
SPLIT = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PATTERNS = [
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    SPLIT,
    r"\d{1,2}(?=\D)|[A-Z]+(?![a-z])|(?<=\s)\w+?[aeiou]|[^\W\d_]+|\s+?(?=\S)|(?i:don't)|.",
    r"(?>a+|b)*c|[[a-c]d-f]|\x41|^a$|(?<!x)y{2,5}?z",
]
REGEXES = [
    r"(foo|ba[rz])+\d{2,4}",
    r"[a-f0-9]{8}(-[a-f0-9]{4}){3}",
    r"\w+@\w+\.(com|org)|[^\x00-\x1f]*é?",
    r"(?:a|b(?:c|d){0,3}){1,5}\s*",
]
SCHEMAS: list[Any] = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 9},
            "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
            "kind": {"enum": ["a", 1, None, [True], {"x": 1.5}]},
        },
        "required": ["name"],
        "additionalProperties": {"type": "number", "maximum": 12.5},
    },
    {
        "$defs": {"node": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/list"}]}},
        "$ref": "#/$defs/node",
        "type": ["array", "null"],
    },
    {
        "type": "array",
        "prefixItems": [{"const": "x"}, {"type": "boolean"}],
        "items": {"type": "string", "pattern": "^[a-c]{2,4}$"},
        "minItems": 2,
        "maxItems": 5,
    },
    {
        "allOf": [{"type": "object", "minProperties": 1}, {"maxProperties": 3}],
        "additionalProperties": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
    },
]
SCHEMAS[1]["$defs"]["list"] = {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3}


def pieces() -> list[bytes]:
    """The pieces of a vocabulary with a token for each byte."""
    return [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % b for b in range(256))] + [
        word.encode() for word in [" ", "▁", *WORDS]
    ]


def llama2c() -> bytes:
    body = b"".join(struct.pack("<fi", -float(i), len(p)) + p for i, p in enumerate(pieces()))
    return struct.pack("<4i", len(pieces()), 1, 2, 8) + body


def tiktoken() -> bytes:
    tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS if len(w) > 1]
    return b"".join(b"%s %d\n" % (base64.b64encode(t), i) for i, t in enumerate(tokens))


def tekken() -> dict[str, Any]:
    tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS if len(w) > 1]
    vocab = [
        {"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": "?"}
        for i, t in enumerate(tokens)
    ]
    config = {
        "pattern": SPLIT,
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": len(tokens) + 10,
        "default_num_special_tokens": 10,
        "version": "v3",
    }
    special = [{"rank": i, "token_str": f"<{i}>", "is_control": True} for i in range(4)]
    return {"config": config, "vocab": vocab, "special_tokens": special}


def model(kind: str) -> dict[str, Any]:
    names = [p.decode() for p in pieces()]
    vocab = {name: i for i, name in enumerate(names)}
    if kind == "Unigram":
        rows = [[name, -float(i % 9)] for name, i in vocab.items()]
        return {"type": kind, "unk_id": 0, "vocab": rows, "byte_fallback": True}
    if kind == "WordPiece":
        vocab |= {"##" + word: len(vocab) + i for i, word in enumerate(WORDS)}
        return {
            "type": kind,
            "unk_token": "<unk>",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        }
    if kind == "WordLevel":
        return {"type": kind, "unk_token": "<unk>", "vocab": vocab}
    merges = ["a b", "ab ab", "h e", "l l", "he ll", "hell o"]
    return {
        "type": kind,
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
        "end_of_word_suffix": "",
        "vocab": vocab,
        "merges": merges,
    }


def hf_tokenizer(kind: str, normalizer: Any, pre_tokenizer: Any, decoder: Any) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": True, "rstrip": False, "normalized": False}
    added = [
        {"id": 1, "content": "<s>", "special": True, **flags},
        {"id": 400, "content": "<|x|>", "special": True, **flags},
        {"id": 401, "content": "added", "special": False, **flags, "normalized": True},
    ]
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": decoder,
        "model": model(kind),
    }


def hf_tokenizers() -> dict[str, dict[str, Any]]:
    def sequence(key: str, *steps: dict[str, Any]) -> dict[str, Any]:
        return {"type": "Sequence", key: list(steps)}

    def replace(old: dict[str, str], new: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": old, "content": new}

    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    spaces = sequence(
        "normalizers",
        {"type": "Prepend", "prepend": "▁"},
        replace({"String": " "}, "▁"),
        replace({"Regex": "[\\t\\n]+"}, " "),
        {"type": "Strip", "strip_left": True, "strip_right": True},
    )
    bytes_back = sequence(
        "decoders",
        replace({"String": "▁"}, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    )
    bert = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }
    steps = sequence(
        "pretokenizers",
        {"type": "Digits", "individual_digits": True},
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "CharDelimiterSplit", "delimiter": "e"},
        {"type": "UnicodeScripts"},
        {"type": "WhitespaceSplit"},
    )
    forms = sequence(
        "normalizers",
        *({"type": name} for name in ("NFD", "StripAccents", "Lowercase", "Nmt", "NFKC")),
    )
    ctc = {"type": "CTC", "pad_token": "<s>", "word_delimiter_token": "|", "cleanup": True}
    return {
        "bpe_bytes": hf_tokenizer(
            "BPE", {"type": "NFC"}, sequence("pretokenizers", split, level), level
        ),
        "bpe_spaces": hf_tokenizer("BPE", spaces, None, bytes_back),
        "unigram": hf_tokenizer("Unigram", forms, metaspace, metaspace),
        "word_piece": hf_tokenizer(
            "WordPiece", bert, {"type": "BertPreTokenizer"}, {"type": "WordPiece", "prefix": "##"}
        ),
        "word_level": hf_tokenizer("WordLevel", None, steps, ctc),
    }


def sentencepieces() -> dict[str, bytes]:
    """Models of SentencePiece with a normalization table of two rows."""
    import sentencepiece

    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules, corpus = folder / "rules.tsv", folder / "corpus.txt"
        rules.write_text("41\t61\nE9\t65 301\n")
        corpus.write_text("hello world abab ab\nworld hello a b\n" * 20)
        for kind in ("unigram", "bpe"):
            sentencepiece.SentencePieceTrainer.train(
                input=str(corpus),
                model_prefix=str(folder / kind),
                model_type=kind,
                vocab_size=300,
                hard_vocab_limit=False,
                byte_fallback=True,
                normalization_rule_tsv=str(rules),
                user_defined_symbols=["<|x|>"],
                minloglevel=2,
            )
            found[kind + ".model"] = (folder / (kind + ".model")).read_bytes()
    return found


def requests() -> list[dict[str, Any]]:
    return [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "stop": ["x", "yy"],
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 3,
            "max_tokens": 5,
            "logit_bias": {"65": -100},
            "presence_penalty": 1,
        },
        {
            "messages": [{"role": "user", "content": "q"}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": SCHEMAS[0]},
            },
        },
        {"prompt": [1, 8, 256], "echo": True, "stop": "x", "max_tokens": 3},
        {"prompt": [1, 8], "logprobs": 3, "max_tokens": 3},
    ]


HTTP = [
    b"POST /v1/x?a=b HTTP/1.1\r\nHost: me\r\nContent-Length: 3\r\nX-Y:  a b \r\n\r\nabc"
    b"GET /c HTTP/1.0\r\nConnection: close\r\n\r\n",
    b"POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    b"2\r\nde\r\n1;x=y\r\nf\r\n0\r\nt: u\r\n\r\nGET http://h/p?q HTTP/1.1\r\nHost: h\r\n\r\n",
]


def wavs() -> dict[str, bytes]:
    """Sound files of every format that is read."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)

    subformat = b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    found = {}
    for kind, bits, extensible in [(1, 16, False), (1, 24, True), (1, 32, False), (3, 32, True)]:
        size = bits // 8
        fields = struct.pack("<HIIHH", 2, 16000, 32000 * size, 2 * size, bits)
        extension = struct.pack("<HHIH", 22, bits, 3, kind) + subformat
        format = struct.pack("<H", 0xFFFE if extensible else kind) + fields
        body = b"WAVE" + chunk(b"LIST", b"odd")
        body += chunk(b"fmt ", format + (extension if extensible else b""))
        body += chunk(b"data", bytes(range(2 * size * 3))) + chunk(b"id3 ", b"x")
        found[f"{kind}-{bits}.wav"] = b"RIFF" + struct.pack("<I", len(body)) + body
    return found


def text_seeds() -> dict[str, dict[str, bytes]]:
    """Names of readers to names of files to bytes."""

    def encoded(values: list[Any]) -> dict[str, bytes]:
        return {f"{i}.json": json.dumps(value).encode() for i, value in enumerate(values)}

    vocab = {p.decode(): i for i, p in enumerate(pieces())}
    return {
        "tokenizer": {
            "llama2c.bin": llama2c(),
            "small.tiktoken": tiktoken(),
            "tekken.json": json.dumps(tekken()).encode(),
            "vocab.json": json.dumps(vocab).encode(),
            **{f"{k}.json": json.dumps(v).encode() for k, v in hf_tokenizers().items()},
            **sentencepieces(),
        },
        "pattern": {str(i): text.encode() for i, text in enumerate(PATTERNS)},
        "regex": {str(i): text.encode() for i, text in enumerate(REGEXES)},
        "schema": encoded(SCHEMAS),
        "request": encoded(requests()),
        "wav": wavs(),
        "http": {str(i): text for i, text in enumerate(HTTP)},
        "chat_template": {
            **{name: text.encode() for name, text in FAMILIES.items()},
            **{str(seed): Templates(seed).template().encode() for seed in range(20)},
        },
    }


def write_text_seeds(folder: Path) -> None:
    for reader, files in text_seeds().items():
        (folder / reader).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / reader / name).write_bytes(content)


if __name__ == "__main__":
    write_text_seeds(Path(sys.argv[1]))
