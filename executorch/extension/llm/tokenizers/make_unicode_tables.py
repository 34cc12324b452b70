"""Write unicode_tables.inc: properties of characters as the reference libraries see them.

python make_unicode_tables.py [FILE]    # default: unicode_tables.inc beside this file

tiktoken and tokenizers each carry tables of several Unicode versions, and a tokenizer must split a
text as they do. So the tables are asked from them: each code point is given to the part of the
library that uses the property. Scripts, grapheme breaks and combining classes are confirmed there.

Numbers are written in base 32, least significant digit first: a character of ALPHABET carries five
bits, and 32 more where another digit follows. unicode.cpp reads them.
"""

from __future__ import annotations

import string
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import regex
import tiktoken

from tokenizers import Regex, normalizers, pre_tokenizers

ALPHABET = string.ascii_letters + string.digits + "-_"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
EVERYTHING = "\0".join(map(chr, CODE_POINTS))
CATEGORIES = (
    ("Cn",)
    + ("Lu", "Ll", "Lt", "Lm", "Lo")
    + ("Mn", "Mc", "Me")
    + ("Nd", "Nl", "No")
    + ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")
    + ("Sm", "Sc", "Sk", "So")
    + ("Zs", "Zl", "Zp")
    + ("Cc", "Cf", "Cs", "Co")
)
BREAKS = ("Other", "CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend") + (
    ("SpacingMark", "L", "V", "T", "LV", "LVT")
)

Runs = list[tuple[int, int]]


def number(value: int) -> str:
    digits = ""
    while value >= 32:
        digits += ALPHABET[value % 32 + 32]
        value //= 32
    return digits + ALPHABET[value]


def numbers(values: Iterable[int]) -> str:
    return "".join(map(number, values))


def zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


def matches(pattern: str) -> set[str]:
    """The characters that a pattern of tiktoken matches."""
    ranks = {bytes([i]): i for i in range(256)}
    encoding = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return set(bytes(encoding.encode_ordinary(EVERYTHING)).decode())


def splits(pre_tokenizer: object) -> set[str]:
    """The characters that a pre-tokenizer cuts out between two NULs."""
    return {piece for piece, _ in pre_tokenizer.pre_tokenize_str(EVERYTHING) if len(piece) == 1}


def in_class(name: str) -> set[str]:
    """The characters of Oniguruma's POSIX class."""
    others = pre_tokenizers.Split(Regex(f"[[:{name}:]]"), "removed").pre_tokenize_str(EVERYTHING)
    return set(EVERYTHING) - set("".join(piece for piece, _ in others))


def runs(values: Sequence[int]) -> str:
    result: Runs = []
    for value in values:
        if result and result[-1][1] == value:
            result[-1] = (result[-1][0] + 1, value)
        else:
            result.append((1, value))
    return numbers(n for run in result for n in run)


def classes() -> tuple[str, str]:
    """Runs of indices, and the classes that these index: 5 bits of category, then flags."""
    values = [0] * 0x110000
    for index, name in enumerate(CATEGORIES[1:], 1):
        if name != "Cs":
            for character in matches(rf"\p{{{name}}}"):
                values[ord(character)] = index
    values[0xD800:0xE000] = [CATEGORIES.index("Cs")] * 0x800
    mark, clean = (
        normalizers.StripAccents(),
        normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
        ),
    )
    chinese = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False
    )
    bert = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
    )
    flags: list[set[str]] = [
        matches(r"\p{Han}"),
        splits(pre_tokenizers.Digits(individual_digits=True)),
        splits(pre_tokenizers.Punctuation()),
        {chr(c) for c in CODE_POINTS if mark.normalize_str(chr(c)) == ""},
        {chr(c) for c in CODE_POINTS if clean.normalize_str(chr(c)) == ""},
        {chr(c) for c in CODE_POINTS if chinese.normalize_str(chr(c)) != chr(c)},
        matches(r"\w"),
        {chr(c) for c in CODE_POINTS if bert.normalize_str(chr(c)) == ""},
        *map(in_class, ("alpha", "upper", "lower", "word")),
    ]
    for bit, characters in enumerate(flags):
        for character in characters:
            if character != "\0" or bit == 4:
                values[ord(character)] |= 32 << bit
    distinct = sorted(set(values))
    index_of = {value: index for index, value in enumerate(distinct)}
    return runs([index_of[v] for v in values]), numbers([len(distinct), *distinct])


def in_script_of(anchor: str, characters: Sequence[str]) -> list[str]:
    """Those which the library leaves together with `anchor`: of its script, or of none."""
    pieces = pre_tokenizers.UnicodeScripts().pre_tokenize_str(
        "".join(anchor + c for c in characters)
    )
    starts = {start for _, (start, _) in pieces}
    return [c for i, c in enumerate(characters) if 2 * i + 1 not in starts]


def scripts() -> str:
    """Runs of script numbers; 0 belongs to every script. The library's Unicode is older than that
    of `regex`, which therefore only names scripts and says where to look first."""
    everything = [chr(c) for c in CODE_POINTS]
    free = set(in_script_of("a", everything)) & set(in_script_of("\u03b1", everything))
    values = [0] * 0x110000
    anchors: dict[int, str] = {}
    unnamed = [c for c in everything if c not in free]
    for number_, name in enumerate(SCRIPTS.split(), 1):
        members = [c for c in regex.findall(rf"\p{{Script={name}}}", EVERYTHING) if c not in free]
        if name in ("Hiragana", "Katakana"):  # the library counts them as Han
            continue
        anchors[number_] = members[0]
        for c in in_script_of(members[0], members):
            values[ord(c)] = number_
    left = [c for c in unnamed if values[ord(c)] == 0]
    for number_, anchor in anchors.items():
        for c in in_script_of(anchor, left):
            values[ord(c)] = number_
    lost = [c for c in left if values[ord(c)] == 0]
    assert not lost, f"in no script of the list: {lost}"
    return runs(values)


SCRIPTS = (
    "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah "
    "Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal "
    "Carian Caucasian_Albanian Chakma Cham Cherokee Common Coptic Cuneiform Cypriot "
    "Cyrillic Deseret Devanagari Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Georgian "
    "Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran Hebrew "
    "Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian "
    "Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Khojki Khudawadi Lao Latin "
    "Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Malayalam Mandaic "
    "Manichaean Marchen Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs "
    "Miao Modi Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue Newa Nko Ogham Ol_Chiki "
    "Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_South_Arabian "
    "Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician "
    "Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting "
    "Sinhala Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham "
    "Tai_Viet Takri Tamil Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai "
    "Warang_Citi Yi "
)


def breaks() -> str:
    """Runs of grapheme cluster breaks; Extended_Pictographic is number 14."""
    values = [0] * 0x110000
    for number_, name in enumerate(BREAKS[1:], 1):
        for character in regex.findall(rf"\p{{GCB={name}}}", EVERYTHING + chr(0)):
            values[ord(character)] = number_
    for character in regex.findall(r"\p{Extended_Pictographic}", EVERYTHING):
        if values[ord(character)] == 0:
            values[ord(character)] = 14
    return runs(values)


def combining_classes() -> str:
    """Runs of canonical combining classes, 0 where tokenizers does not move the character."""
    nfd = normalizers.NFD()
    values = [0] * 0x110000
    for c in CODE_POINTS:
        k = unicodedata.combining(chr(c))
        if k:
            # U+0345 has class 240, U+0334 class 1: one of them changes places with this character.
            after, before = "a\u0345" + chr(c), "a" + chr(c) + "\u0334"
            moved = nfd.normalize_str(after) != after or (
                k > 1 and nfd.normalize_str(before) != before
            )
            values[c] = k if moved or k in (1, 240) else 0
    return runs(values)


def mappings(mapping: Callable[[str], str], skip: Callable[[str], bool]) -> str:
    """Triples of distance to the code point before, count, and differences to the code point."""
    result: list[int] = []
    last = 0
    for c in CODE_POINTS:
        to = mapping(chr(c))
        if to != chr(c) and not skip(chr(c)):
            result += [c - last, len(to), *(zigzag(ord(t) - c) for t in to)]
            last = c
    return numbers([*result, 0])


def compositions() -> str:
    """Pairs of code points and what they compose to."""
    nfc, nfd = normalizers.NFC(), normalizers.NFD()
    result: list[int] = []
    for c in CODE_POINTS:
        parts = nfd.normalize_str(chr(c))
        if len(parts) < 2 or 0xAC00 <= c <= 0xD7A3 or nfc.normalize_str(parts) != chr(c):
            continue
        first = nfc.normalize_str(parts[:-1])
        assert len(first) == 1
        result += [ord(first), ord(parts[-1]), c]
    return numbers([len(result) // 3, *result])


def tables() -> dict[str, str]:
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    lower = normalizers.Lowercase().normalize_str

    def hangul(c: str) -> bool:
        return 0xAC00 <= ord(c) <= 0xD7A3

    def folded(c: str) -> str:
        return c.casefold() if len(c.casefold()) == 1 else c

    class_runs, class_list = classes()
    return {
        "kClassList": class_list,
        "kClassRuns": class_runs,
        "kScriptRuns": scripts(),
        "kBreakRuns": breaks(),
        "kCombiningRuns": combining_classes(),
        "kCanonical": mappings(nfd, hangul),
        "kCompatible": mappings(nfkd, lambda c: hangul(c) or nfd(c) == nfkd(c)),
        "kCompositions": compositions(),
        "kLower": mappings(lower, lambda c: False),
        "kFolded": mappings(folded, lambda c: folded(c) == lower(c)),
    }


def render() -> str:
    lines = [
        "// Written by make_unicode_tables.py, which says what this is.",
        "// clang-format off",
    ]
    for name, digits in tables().items():
        lines.append(f"constexpr char {name}[] =")
        lines += [f'"{digits[i : i + 490]}"' for i in range(0, len(digits), 490)]
        lines[-1] += ";"
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("unicode_tables.inc")
    Path(target).write_text(render())
