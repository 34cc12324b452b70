"""Small tokenizers of every kind, each beside the library that is right about it.

`pairs(folder)` trains them on text that is at hand, writes their files to `folder`, and gives each
as a Pair.
"""

from __future__ import annotations

import base64
import codecs
import functools
import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import sentencepiece
import tiktoken
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from executorch.extension.llm.tokenizers import Tokenizer as Ours
from executorch.extension.llm.tokenizers import load_bytes, load_file

Encode = Callable[[str], list[int]]


class Pair(NamedTuple):
    name: str
    ours: Ours
    encode: Encode  # of the reference
    decode: Callable[[list[int]], str]
    encode_bytes: Callable[[bytes], list[int]]  # that are no UTF-8
    # The bytes that our tokens spell, as text of the reference; None: decode() shows them so.
    shown: Callable[[bytes], str] | None = None


DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TAIL = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    f"{_UPPER}*{_LOWER}+{_TAIL}|{_UPPER}+{_LOWER}*{_TAIL}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Words of Chinese characters, and of all others: intersections of classes.
_NOT_HAN = r"&&[^\p{Han}]]"
HAN = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{_NOT_HAN}*"
    rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{_NOT_HAN}+{_TAIL}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{_NOT_HAN}+"
    rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{_NOT_HAN}*{_TAIL}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# No scanner of its own: goes through the general engine.
OTHER = r"\d{1,2}(?=\D)|[A-Z]+(?![a-z])|(?<=\s)\w+?[aeiou]|[^\W\d_]+|\s+?(?=\S)|(?i:don't)|."


def corpus() -> str:
    """A megabyte of Shakespeare where it is at hand, else words made of syllables."""
    play = DATA / "tinyshakespeare.txt"
    if play.exists():
        return play.read_text()
    rng = random.Random(0)
    syllables = [a + b for a in "bcdfghklmnprst" for b in ("a", "e", "i", "o", "ou", "er")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(3000)]
    return "\n".join(" ".join(rng.choices(words, k=12)).capitalize() + "." for _ in range(4000))


def byte_ranks(text: str, size: int) -> dict[bytes, int]:
    """Byte pairs merged by a trained byte-level model, by rank."""
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator([text], trainer)
    byte_of = {}
    extra = 0
    for b in range(256):
        if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE:
            byte_of[chr(b)] = b
        else:
            byte_of[chr(256 + extra)] = b
            extra += 1
    pieces = sorted(model.get_vocab().items(), key=lambda item: item[1])
    return {bytes(byte_of[c] for c in piece): rank for rank, (piece, _) in enumerate(pieces)}


def tiktoken_pairs(folder: Path) -> Iterator[Pair]:
    ranks = byte_ranks(corpus()[:300000], 3000)
    file = folder / "small.tiktoken"
    lines = (f"{base64.b64encode(t).decode()} {r}" for t, r in ranks.items())
    file.write_text("\n".join(lines) + "\n")
    names = ["<|begin|>", "<|end|>", "<|x|>"]
    for name, pattern in {
        "gpt2": GPT2,
        "cl100k": CL100K,
        "llama3": LLAMA3,
        "qwen2": QWEN2,
        "o200k": O200K,
        "han": HAN,
        "other": OTHER,
    }.items():
        special = {text: len(ranks) + i for i, text in enumerate(names)}
        encoding = tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
        )
        yield _tiktoken(name, load_file(str(file), names, pattern), encoding)
    yield _tekken(ranks, names, folder / "tekken.json")
    real = DATA / "gpt2.tiktoken"
    if real.exists():
        rows = (line.split() for line in real.read_text().splitlines())
        encoding = tiktoken.Encoding(
            "gpt2",
            pat_str=GPT2,
            mergeable_ranks={base64.b64decode(t): int(r) for t, r in rows},
            special_tokens={"<|endoftext|>": 50256},
        )
        yield _tiktoken("GPT-2", load_file(str(real)), encoding)
        merges = (DATA / "gpt2_merges.txt").read_bytes()
        vocab = load_bytes((DATA / "gpt2_vocab.json").read_bytes(), merges=merges)
        yield _tiktoken("GPT-2", vocab, encoding)._replace(name="vocab.json GPT-2")


def _tekken(ranks: dict[bytes, int], names: list[str], file: Path) -> Pair:
    """The same vocabulary behind ten special tokens, of which the first three have names."""
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in ranks.items()
    ]
    special = [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(names)]
    config = {
        "pattern": LLAMA3,
        "num_vocab_tokens": len(vocab),
        "default_vocab_size": len(vocab) + 10,
        "default_num_special_tokens": 10,
        "version": "v7",
    }
    file.write_text(json.dumps({"config": config, "vocab": vocab, "special_tokens": special}))
    unnamed = {f"<SPECIAL_{i}>": i for i in range(len(names), 10)}
    encoding = tiktoken.Encoding(
        "tekken",
        pat_str=LLAMA3,
        mergeable_ranks={token: rank + 10 for token, rank in ranks.items()},
        special_tokens={name: i for i, name in enumerate(names)} | unnamed,
    )
    return _tiktoken("tekken", load_file(str(file)), encoding)


def _replacing(encode: Encode) -> Callable[[bytes], list[int]]:
    """For a library that takes str only: what is no UTF-8 becomes U+FFFD."""
    return lambda text: encode(text.decode("utf-8", "replace"))


def _tiktoken(name: str, ours: Ours, encoding: tiktoken.Encoding) -> Pair:
    encode = functools.partial(encoding.encode, allowed_special="all")
    return Pair(f"tiktoken {name}", ours, encode, encoding.decode, _replacing(encode))


def _hf(name: str, tokenizer: Tokenizer, folder: Path) -> Pair:
    file = folder / (name.replace(" ", "_") + ".json")
    tokenizer.save(str(file))
    ours = load_file(str(file))

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    return Pair(
        f"tokenizers {name}",
        ours,
        encode,
        functools.partial(tokenizer.decode, skip_special_tokens=False),
        _replacing(encode),
    )


def _trained(model: object, trainer: object, text: str, **parts: object) -> Tokenizer:
    tokenizer = Tokenizer(model)
    for key, part in parts.items():
        setattr(tokenizer, key, part)
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    tokenizer.add_special_tokens(["<|x|>", AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.add_tokens(
        [
            AddedToken("added", single_word=True),
            AddedToken("New Token", rstrip=True),
            AddedToken("Ünïcode", normalized=True),
        ]
    )
    return tokenizer


_SIZE = {"vocab_size": 1500, "show_progress": False}
_KNOWN = {"special_tokens": ["<unk>"], **_SIZE}
_METASPACE = pre_tokenizers.Metaspace()


def hf_pairs(folder: Path) -> Iterator[Pair]:
    text = corpus()[:200000]
    for make in (_byte_level, _characters, _word_piece, _unigram, _word_level):
        for name, tokenizer in make(text):
            yield _hf(name, tokenizer, folder)


def _byte_level(text: str) -> Iterator[tuple[str, Tokenizer]]:
    alphabet = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), **_SIZE}
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    byte_level = {
        "byte level": {"pre_tokenizer": level},
        "byte level prefix": {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
        "byte level NFC": {"pre_tokenizer": level, "normalizer": normalizers.NFC()},
        "llama3": {
            "pre_tokenizer": pre_tokenizers.Sequence(
                [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), plain]
            )
        },
        "digits": {
            "pre_tokenizer": pre_tokenizers.Sequence(
                [pre_tokenizers.Digits(individual_digits=True), level]
            )
        },
        "other pattern": {
            "pre_tokenizer": pre_tokenizers.Sequence(
                [pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "merged_with_next"), plain]
            )
        },
    }
    for name, parts in byte_level.items():
        trainer = trainers.BpeTrainer(**alphabet)
        yield name, _trained(models.BPE(), trainer, text, **parts)


def _characters(text: str) -> Iterator[tuple[str, Tokenizer]]:
    spaces = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fallback = ["<unk>", *(f"<0x{b:02X}>" for b in range(256))]
    characters = {
        "BPE metaspace": (models.BPE(unk_token="<unk>"), {"pre_tokenizer": _METASPACE}),
        "BPE fuse": (
            models.BPE(unk_token="<unk>", fuse_unk=True),
            {"pre_tokenizer": pre_tokenizers.Metaspace(prepend_scheme="first")},
        ),
        "BPE suffix": (
            models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
            {"pre_tokenizer": pre_tokenizers.Whitespace(), "normalizer": normalizers.Lowercase()},
        ),
        "BPE llama2": (
            models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
            {"normalizer": spaces, "pre_tokenizer": _METASPACE},
        ),
    }
    for name, (model, parts) in characters.items():
        tokens = fallback if "llama2" in name else ["<unk>"]
        suffix = {"end_of_word_suffix": "</w>"} if "suffix" in name else {}
        trainer = trainers.BpeTrainer(**{**_KNOWN, "special_tokens": tokens, **suffix})
        tokenizer = _trained(model, trainer, text, **parts)
        if name == "BPE llama2":
            tokenizer.pre_tokenizer = None
        yield name, tokenizer


def _word_piece(text: str) -> Iterator[tuple[str, Tokenizer]]:
    bert = {
        "normalizer": normalizers.BertNormalizer(),
        "pre_tokenizer": pre_tokenizers.BertPreTokenizer(),
    }
    trainer = trainers.WordPieceTrainer(special_tokens=["[UNK]"], **_SIZE)
    tokenizer = _trained(models.WordPiece(unk_token="[UNK]"), trainer, text, **bert)
    tokenizer.decoder = decoders.WordPiece()
    yield "WordPiece", tokenizer


def _unigram(text: str) -> Iterator[tuple[str, Tokenizer]]:
    for name, normalizer, pre_tokenizer in (
        ("NFKC", normalizers.NFKC(), _METASPACE),
        (
            "NFKD strip",
            normalizers.Sequence(
                [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()]
            ),
            _METASPACE,
        ),
        (
            "Nmt",
            normalizers.Sequence([normalizers.Nmt(), normalizers.NFD()]),
            pre_tokenizers.WhitespaceSplit(),
        ),
        ("scripts", normalizers.NFC(), pre_tokenizers.UnicodeScripts()),
        ("punctuation", normalizers.Lowercase(), pre_tokenizers.Punctuation("contiguous")),
        (
            "delimiter",
            normalizers.Replace(Regex(r"\s+"), " "),
            pre_tokenizers.CharDelimiterSplit("e"),
        ),
    ):
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **_KNOWN)
        parts = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
        yield f"Unigram {name}", _trained(models.Unigram(), trainer, text, **parts)


def _word_level(text: str) -> Iterator[tuple[str, Tokenizer]]:
    trainer = trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False)
    words = {"pre_tokenizer": pre_tokenizers.Whitespace()}
    yield "WordLevel", _trained(models.WordLevel(unk_token="<unk>"), trainer, text, **words)


def sentencepiece_pairs(folder: Path) -> Iterator[Pair]:
    source = folder / "corpus.txt"
    source.write_text(corpus()[:200000])
    common = {"input": str(source), "minloglevel": 2, "vocab_size": 900}
    for name, options in {
        "unigram": {"model_type": "unigram"},
        "unigram bytes": {"model_type": "unigram", "byte_fallback": True, "vocab_size": 1100},
        "bpe": {"model_type": "bpe"},
        "bpe bytes": {
            "model_type": "bpe",
            "byte_fallback": True,
            "vocab_size": 1100,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
        },
        "bpe user": {"model_type": "bpe", "user_defined_symbols": ["<|x|>", "added", "  "]},
        "unigram user": {"model_type": "unigram", "user_defined_symbols": ["<|x|>", "added"]},
        "suffix": {"model_type": "unigram", "treat_whitespace_as_suffix": True},
        "no prefix": {"model_type": "bpe", "add_dummy_prefix": False},
        "nfkc cf": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc_cf"},
        "char": {"model_type": "char", "vocab_size": 60, "hard_vocab_limit": False},
        "word": {"model_type": "word", "hard_vocab_limit": False},
    }.items():
        prefix = str(folder / name.replace(" ", "_"))
        sentencepiece.SentencePieceTrainer.train(**{**common, **options, "model_prefix": prefix})
        model = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
        ours = load_file(prefix + ".model")
        yield Pair(
            f"sentencepiece {name}",
            ours,
            model.encode,
            model.decode,
            model.encode,
            _shown_one_by_one,
        )
        if name == "bpe bytes":
            yield _llama2c(model, folder / "tokenizer.bin")


def _one_replacement(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("one by one", _one_replacement)


def _shown_one_by_one(text: bytes) -> str:
    """As sentencepiece shows bytes that are no UTF-8; Python shows the beginning of a character as
    one replacement."""
    return text.decode(errors="one by one")


def _llama2c(model: sentencepiece.SentencePieceProcessor, file: Path) -> Pair:
    """The pieces and scores of `model`, as llama2.c's exporter writes them."""
    pieces = [model.id_to_piece(i).replace("▁", " ") for i in range(model.vocab_size())]
    pieces[1:3] = ["\n<s>\n", "\n</s>\n"]
    encoded = [piece.encode() for piece in pieces]
    parts = [struct.pack("<i", max(map(len, encoded)))]
    for i, piece in enumerate(encoded):
        parts += [struct.pack("<fi", model.get_score(i), len(piece)), piece]
    file.write_bytes(b"".join(parts))
    ours = load_file(str(file))

    def encode(text: str) -> list[int]:
        # The model takes this character for a space; llama2.c has no such character.
        return ours.encode(text) if "▁" in text else model.encode(text)

    def encode_bytes(text: bytes) -> list[int]:
        # llama2.c keeps bytes that are no UTF-8: nothing else does, so they are only spelled back.
        tokens = ours.encode(text)
        assert ours.decode_bytes(tokens) == text, text
        return tokens

    def decode(tokens: list[int]) -> str:
        # The first three, and how damaged characters are shown, are each library's own affair.
        text = model.decode(tokens)
        return ours.decode(tokens) if min(tokens) < 3 or "\ufffd" in text else text

    return Pair("llama2.c", ours, encode, decode, encode_bytes)


def pairs(folder: Path) -> Iterator[Pair]:
    for make in (tiktoken_pairs, hf_pairs, sentencepiece_pairs):
        yield from make(folder)
