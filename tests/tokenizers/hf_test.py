"""A tokenizer.json read as `tokenizers` reads it: patterns, added tokens, ends of texts."""

import sys
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre

from executorch.extension.llm.tokenizers import StreamDecoder, load_bytes

sys.path.insert(0, str(Path(__file__).parent))

from references import CL100K

# Parts of patterns whose meaning differs between engines, with texts that show it.
PATTERNS = {
    r"[[:alpha:]]+": ["abc1", "é\u0345Ⅷ\u24b6²"],
    r"[^[:space:]]+": ["ab cd"],
    r"[[:^alpha:]]+": ["ab12"],
    r"[[:alpha:][:digit:]_]+": ["a0-_"],
    r"[[:punct:]]+": ["!$+a"],
    r"[[:upper:]][[:lower:]]+": ["Aab ⅧⅷªA"],
    r"(?i)[[:upper:]]+": ["aBc1"],
    r"[[:graph:]]+": ["a\u0085\u200b b\x01"],
    r"[[:print:]]+": ["a\u0085\u200b b\x01\u2028"],
    r"[[:cntrl:][:blank:]]+": ["\t\x01 a"],
    r"[[:xdigit:]]+|[[:alnum:]]": ["fgz9"],
    r"[[:word:]]+|[[:^ascii:]]": ["a½_\u200d"],
    r"[\p{L}&&[^\p{Han}]b-y]+": ["ab中c日z"],
    r"[^\w&&[^\s]&&^-~]+": ["a !-b^&"],
    r"\p{Alpha}+": ["abé1"],
    r"\p{alnum}+|\p{Punct}": ["ab1_$"],
    r"\p{Word}+|\P{^letter}": ["½a_"],
    r"\p{White_Space}+|\pL": ["a \u0085pL"],
    r"\h+": ["xabx"],
    r"[\H]+": ["xyab"],
    r"^": ["a\nb", "a\n", "\n", "a\n\nb"],
    r"^.": ["a\nb"],
    r".$": ["ab\nc", "ab\n"],
    r"$": ["a\n", "a\n\nb", "\n"],
    r"\s+$": ["a \nb", "a  \n  b", "a \n"],
    r"\s++$": ["a \n", "a \n b"],
    r".\Z": ["ab\n", "ab", "ab\n\n"],
    r"\Z": ["a\n", "a\n\n", "\n"],
    r".\z|\A.": ["ab\n", "ab"],
    r"\p{N}{1,3}+": ["12345678"],
    r"a{1,2}+a": ["aaaaaa"],
    r"a{2}?": ["aaa", "b"],
    r"a{1,2}?": ["aaa"],
    r"a{2}+?": ["aaaa"],
    r"a++b": ["aab"],
    r"\w+": ["½_", "a²b", "a\u200db", "a\u24b6"],
    r"\W+": ["²½③\u200d!"],
    r"[\w]+": ["½²_"],
    r"[^\W]+": ["½a!"],
    r"\b": ["a\u200db", "a²b", "!½"],
    r"\B": ["a\u200db", "a²b"],
}


def both(tokenizer, text):
    ours = load_bytes(tokenizer.to_str().encode()).encode(text)
    return ours, tokenizer.encode(text, add_special_tokens=False).ids


def parts_of(text):
    """A model that has every part of the text as a word."""
    words = {"<unk>": 0}
    for begin in range(len(text)):
        for end in range(begin, len(text)):
            words.setdefault(text[begin : end + 1], len(words))
    return models.WordLevel(words, unk_token="<unk>")


def characters(text):
    return models.BPE({c: i for i, c in enumerate(dict.fromkeys("\x02" + text))}, [])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_split_and_replace_read_oniguruma(pattern):
    for text in PATTERNS[pattern]:
        split = Tokenizer(parts_of(text))
        split.pre_tokenizer = pre.Split(Regex(pattern), "isolated")
        ours, reference = both(split, text)
        assert ours == reference, text
        replace = Tokenizer(characters("@" + text))
        replace.normalizer = norm.Replace(Regex(pattern), "@")
        ours, reference = both(replace, text)
        assert ours == reference, text


def test_a_known_pattern_cuts_no_numbers_where_oniguruma_does_not():
    for text in ("12345678 ab \n", "a  \n\n b"):
        tokenizer = Tokenizer(parts_of(text))
        tokenizer.pre_tokenizer = pre.Split(Regex(CL100K), "isolated")
        ours, reference = both(tokenizer, text)
        assert ours == reference


@pytest.mark.parametrize("pattern", ["[[:foo:]]", "[[:Alpha:]]", "[[:alpha:]", "[[:alpha]"])
def test_what_oniguruma_refuses_of_posix_is_refused(pattern):
    with pytest.raises(Exception, match="Oniguruma"):
        Regex(pattern)
    with pytest.raises(ValueError, match="at byte"):
        load_bytes(
            b'{"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":{"type":"Split",'
            b'"pattern":{"Regex":"%s"},"behavior":"Isolated"}}' % pattern.encode()
        )


@pytest.mark.parametrize(
    "text, added",
    [
        ("foo a", [AddedToken("foo", rstrip=True), " "]),
        ("foo bar", [AddedToken("foo", rstrip=True), " bar"]),
        ("foo \t  a", [AddedToken("foo", rstrip=True), " "]),
        ("foo  x a", [AddedToken("foo", rstrip=True), AddedToken("x", lstrip=True)]),
        ("foo  \nx a", [AddedToken("foo", rstrip=True), AddedToken("\nx", lstrip=True)]),
        ("\n\n", [AddedToken("\n", rstrip=True)]),
        (" \n \n a", [AddedToken("\n", rstrip=True, lstrip=True)]),
    ],
)
def test_tokens_in_stripped_white_space_are_found(text, added):
    tokenizer = Tokenizer(characters(text))
    tokenizer.add_tokens(added)
    ours, reference = both(tokenizer, text)
    assert ours == reference


def test_many_tokens_in_one_run_of_white_space_take_no_quadratic_time():
    tokenizer = Tokenizer(characters("a"))
    tokenizer.add_tokens([AddedToken("\n", rstrip=True)])
    ours = load_bytes(tokenizer.to_str().encode())
    assert ours.encode("\n" * 300_000 + "a") == [2] * 300_000 + [1]


FIRST = pre.Metaspace(prepend_scheme="first")


def by(pattern):
    return pre.Sequence([pre.Split(Regex(pattern), "isolated"), FIRST])


@pytest.mark.parametrize(
    "normalizer, pre_tokenizer, text",
    [
        (None, FIRST, "ac"),
        (None, pre.Sequence([pre.WhitespaceSplit(), FIRST]), " a c"),
        (None, pre.Sequence([pre.WhitespaceSplit(), FIRST]), "a c"),
        (None, pre.Sequence([pre.Split(" ", "merged_with_next"), FIRST]), "a c"),
        (None, pre.Sequence([pre.UnicodeScripts(), FIRST]), " ac"),
        (None, pre.Sequence([pre.BertPreTokenizer(), FIRST]), ".a"),
        (None, pre.Sequence([pre.Metaspace(), pre.Split(Regex("."), "isolated"), FIRST]), "cd"),
        (None, pre.Sequence([pre.Metaspace(), pre.Split(Regex("."), "isolated"), FIRST]), " cd"),
        (norm.Strip(), FIRST, " a"),
        (norm.Strip(), FIRST, "a "),
        (norm.Sequence([norm.Strip(), norm.Replace(Regex("^ *"), "a")]), FIRST, " "),
        (norm.Strip(left=False), by("."), " a "),
        (norm.Nmt(), FIRST, "\x01a"),
        (norm.StripAccents(), by("."), "\u0301cd"),
        (norm.Replace(Regex("^ +"), ""), FIRST, " a"),
        (norm.Replace(Regex(" +"), "xe"), by("."), " cd"),
        (norm.Replace(Regex(" +"), "xe"), by("."), "  cd"),
        (norm.Replace(Regex("^"), "xe"), by("."), "cd"),
        (norm.Replace(Regex("(?<=c)"), "x"), by("."), "cd"),
        (norm.Replace("cd", "xe"), by("."), "cd"),
        (norm.Replace("c", ""), by("."), "cd"),
        (norm.Prepend("ax"), by("."), "cd"),
        (norm.Sequence([norm.Prepend("a"), norm.Strip()]), by("."), " c"),
        (norm.Sequence([norm.Prepend("a"), norm.Replace("a", "")]), by("."), "cd"),
        (norm.NFD(), by("."), "\u1e69cd"),
        (norm.Sequence([norm.NFC(), norm.Lowercase()]), by("."), "E\u0301cd"),
        (norm.Lowercase(), by("."), "\u0130a"),
        (norm.BertNormalizer(), pre.Sequence([pre.WhitespaceSplit(), FIRST]), "中a"),
    ],
)
def test_the_first_word_is_that_with_which_the_text_starts(normalizer, pre_tokenizer, text):
    tokenizer = Tokenizer(characters("\u2581 acdesx\u0323\u0301\u0307é中."))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    ours, reference = both(tokenizer, text)
    assert ours == reference
    tokenizer.add_tokens(["x"])
    ours, reference = both(tokenizer, "x" + text + "x")
    assert ours == reference


@pytest.mark.parametrize("place", ["pre_tokenizer", "normalizer"])
def test_a_pattern_that_takes_too_many_steps_is_named_with_its_place(place):
    pattern = Regex(r"(a|b)*?c|\S")
    tokenizer = Tokenizer(characters("ab"))
    part = pre.Split(pattern, "isolated") if place == "pre_tokenizer" else norm.Replace(pattern, "")
    setattr(tokenizer, place, part)
    ours = load_bytes(tokenizer.to_str().encode())
    named = r"\(a\|b\)\*\?c\|\\S takes too many steps at byte \d+ of 1000, before .aaaa"
    for _ in range(2):
        with pytest.raises(ValueError, match=named):
            ours.encode("a" * 1000)
    assert ours.encode("") == []
    with pytest.raises(ValueError, match="decode: error 3"):
        ours.decode([1 << 40])


STRIP = [decoders.Fuse(), decoders.Strip("▁", 1, 2)]


@pytest.mark.parametrize(
    "decoder, tokens",
    [
        (decoders.Sequence(STRIP), ["a", "▁", "▁", "b", "▁", "▁▁", "c▁", "▁"]),
        (decoders.Sequence([decoders.Fuse(), decoders.Strip("▁", 2, 0)]), ["▁", "▁a", "▁▁", "b"]),
        (decoders.BPEDecoder(suffix="e"), ["nede", "x", "e", "e", "aeb", "ée"]),
        (decoders.BPEDecoder(), ["n</w>", "</w>x", "y", "z</w>"]),
    ],
)
def test_a_stream_of_what_ends_otherwise_is_the_text(decoder, tokens):
    words = {token: i for i, token in enumerate(dict.fromkeys(["<unk>", *tokens]))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.decoder = decoder
    ours = load_bytes(tokenizer.to_str().encode())
    for count in [*range(1, len(tokens) + 1), 300]:
        ids = [words[tokens[i % len(tokens)]] for i in range(count)]
        stream = StreamDecoder(ours)
        shown = "".join(map(stream.push, ids))
        assert tokenizer.decode(ids).startswith(shown)
        assert shown + stream.finish() == ours.decode(ids) == tokenizer.decode(ids)


@pytest.mark.parametrize(
    "options",
    [
        {"end_of_word_suffix": "</w>", "unk_token": "<unk>"},
        {"continuing_subword_prefix": "##", "unk_token": "<unk>"},
        {},
    ],
)
def test_a_word_with_the_sign_of_a_space_in_it_is_one_word(options):
    pieces = ["<unk>", "a", "▁", "##▁", "##a", "a</w>", "▁</w>", "▁▁", "▁▁</w>"]
    words = {piece: i for i, piece in enumerate(pieces)}
    merges = [] if "continuing_subword_prefix" in options else [("▁", "▁"), ("▁", "▁</w>")]
    tokenizer = Tokenizer(models.BPE(words, merges, **options))
    for text in ("a▁", "a▁a", "▁a▁▁", "▁o▁", "aoa▁▁"):
        ours, reference = both(tokenizer, text)
        assert ours == reference, text


@pytest.mark.parametrize(
    "behavior", ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
)
def test_an_empty_text_is_between_all_characters(behavior):
    tokenizer = Tokenizer(parts_of("aé 中"))
    for invert in (False, True):
        tokenizer.pre_tokenizer = pre.Split("", behavior, invert)
        ours, reference = both(tokenizer, "aé 中")
        assert ours == reference
    replace = Tokenizer(characters("@aé 中"))
    replace.normalizer = norm.Replace("", "@")
    ours, reference = both(replace, "aé 中")
    assert ours == reference


def test_pieces_of_one_length():
    tokenizer = Tokenizer(parts_of("aé 中bc"))
    for length in (1, 2, 4, 5, 6, 7):
        tokenizer.pre_tokenizer = pre.FixedLength(length=length)
        ours, reference = both(tokenizer, "aé 中bc")
        assert ours == reference
    tokenizer.pre_tokenizer = pre.FixedLength(length=5)
    text = tokenizer.to_str()
    for wrong in ("0", "-1", '"5"', "1.5"):
        damaged = text.replace('"length":5', f'"length":{wrong}')
        assert damaged != text
        with pytest.raises(ValueError, match="FixedLength: the length"):
            load_bytes(damaged.encode())


def test_a_normalizer_spells_bytes():
    pieces = [*pre.ByteLevel.alphabet(), "<x>", "aĠ", "aĠb"]
    words = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(words, [("a", "Ġ"), ("aĠ", "b")]))
    tokenizer.normalizer = norm.Sequence([norm.NFC(), norm.ByteLevel()])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken("é x", normalized=True)])
    for text in ("a b", "e\u0301 xa b", "é中\x00🙂\n"):
        ours, reference = both(tokenizer, text)
        assert ours == reference, text
        assert load_bytes(tokenizer.to_str().encode()).decode(ours) == tokenizer.decode(reference)


def test_the_first_token_loses_all_signs_of_spaces():
    words = {piece: i for i, piece in enumerate(["▁▁a▁", "▁▁", "▁b"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="▁▁"))
    for scheme in ("always", "first", "never"):
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
        ours = load_bytes(tokenizer.to_str().encode())
        for ids in ([0], [1, 2], [2, 1, 0], [0, 0]):
            assert ours.decode(ids) == tokenizer.decode(ids)
