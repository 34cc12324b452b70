"""Byte-level byte-pair encoding: learn a vocabulary from a text, encode and decode with it.

The vocabulary is a JSON object from token to number, each byte spelled as one printable character
(GPT-2's alphabet). Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword
Units", 2016.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

END_OF_TEXT = "<|endoftext|>"
# A word with the space before it, a number, a run of punctuation, or white space.
WORD = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_alphabet() -> list[str]:
    """The character that spells each byte: itself if printable Latin-1, else one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(b) if b in printable else chr(next(spare)) for b in range(256)]


def train(text: str, vocab_size: int, progress=lambda done: None) -> dict[str, int]:
    """Learn `vocab_size` tokens from `text`: 256 bytes, merges by frequency, END_OF_TEXT last."""
    spell = byte_alphabet()
    counts = Counter(WORD.findall(text))
    words = [([spell[b] for b in w.encode()], n) for w, n in counts.items()]
    pairs: Counter[tuple[str, str]] = Counter()
    where: dict[tuple[str, str], set[int]] = defaultdict(set)
    for i, (word, n) in enumerate(words):
        for pair in zip(word, word[1:], strict=False):
            pairs[pair] += n
            where[pair].add(i)
    tokens = list(spell)
    while len(tokens) < vocab_size - 1 and pairs:
        best = max(pairs, key=lambda p: (pairs[p], p))
        if pairs[best] < 2:
            break
        tokens.append("".join(best))
        for i in where.pop(best):
            word, n = words[i]
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] -= n
            word = _merge(word, best)
            words[i] = (word, n)
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += n
                where[pair].add(i)
        del pairs[best]
        progress(len(tokens))
    return {t: i for i, t in enumerate([*tokens, END_OF_TEXT])}


def _merge(word: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(word):
        if tuple(word[i : i + 2]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


class Tokenizer:
    """Encode as the C++ `BasicTokenizer` does: each word becomes its longest known pieces."""

    def __init__(self, vocab: dict[str, int]) -> None:
        self.vocab = vocab
        self.pieces = {i: t for t, i in vocab.items()}
        self.spell = byte_alphabet()
        self.byte = {c: b for b, c in enumerate(self.spell)}
        self.longest = max(len(t) for t in vocab)
        self.cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for word in WORD.findall(text):
            if word not in self.cache:
                self.cache[word] = self._encode_word("".join(self.spell[b] for b in word.encode()))
            ids += self.cache[word]
        return ids

    def _encode_word(self, word: str) -> list[int]:
        ids = []
        while word:
            n = next(
                n for n in range(min(len(word), self.longest), 0, -1) if word[:n] in self.vocab
            )
            ids.append(self.vocab[word[:n]])
            word = word[n:]
        return ids

    def decode(self, ids: list[int]) -> str:
        text = "".join(self.pieces[i] for i in ids if self.pieces[i] != END_OF_TEXT)
        return bytes(self.byte[c] for c in text).decode(errors="replace")
