"""What files become tokenizers, what they refuse, and what their Python face does."""

import json
import random

import pytest
import sentencepiece

from executorch.extension.llm.tokenizers import (
    StreamDecoder,
    get_tokenizer,
    load_bytes,
    load_file,
)

VOCAB = {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4, "Ã": 5, "©": 6, "<|endoftext|>": 7}


def vocab(merges: bytes = b"", config: bytes = b""):
    return load_bytes(json.dumps(VOCAB).encode(), merges=merges, config=config)


def test_merges_decide_where_there_are_any():
    assert vocab(b"#version: 0.2\na b\n").encode("ab ab") == [2, 3, 2]
    assert vocab().encode("ab ab") == [2, 4]


def test_special_tokens_in_a_text_are_those_tokens():
    tokenizer = vocab()
    assert tokenizer.encode("ab<|endoftext|>b") == [2, 7, 1]
    assert tokenizer.is_special(7) and not tokenizer.is_special(2)
    assert tokenizer.eos_id == 7 and tokenizer.end_tokens == [7]
    assert tokenizer.decode([2, 7], skip_special_tokens=True) == "ab"


def test_a_stream_never_shows_half_a_character():
    stream = StreamDecoder(vocab())
    assert [stream.push(5), stream.push(6), stream.push(0)] == ["", "é", "a"]
    assert stream.push(5) == "" and stream.finish() == "\ufffd"


@pytest.mark.parametrize("removes", [True, False])
def test_a_stream_keeps_spaces_behind_tokens_that_spell_nothing(removes, tmp_path):
    """A space at the beginning of a text spells nothing, and neither do control tokens."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sat on the mat\n  the end of the  cat\n" * 20)
    prefix = tmp_path / "small"
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(prefix),
        model_type="bpe",
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        remove_extra_whitespaces=removes,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    tokenizer = load_file(f"{prefix}.model")
    space, word = model.piece_to_id("▁"), model.piece_to_id("▁the")
    assert tokenizer.token_bytes(space) == b" " and tokenizer.token_bytes(word) == b" the"
    rng = random.Random(3)
    rows = [rng.choices([space, space, word, model.bos_id()], k=9) for _ in range(200)]
    for tokens in [*rows, [word, *[space] * 40, word]]:
        stream = StreamDecoder(tokenizer, skip_special_tokens=False)
        shown = "".join(map(stream.push, tokens)) + stream.finish()
        assert shown == tokenizer.decode(tokens) == model.decode(tokens)


def test_words_begin_at_spaces_also_where_spaces_are_put_behind_them(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sat on the mat\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(tmp_path / "words"),
        model_type="word",
        hard_vocab_limit=False,
        minloglevel=2,
        treat_whitespace_as_suffix=True,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "words.model"))
    tokenizer = load_file(str(tmp_path / "words.model"))
    for text in ("", "x", "the", "the cat", "dog", "a dog on the mat", " the  cat "):
        assert tokenizer.encode(text) == model.encode(text)


def test_text_that_is_no_utf8_is_read_as_replacement():
    tokenizer = vocab()
    assert tokenizer.encode(b"a\xffb") == tokenizer.encode("a\ufffdb")


def test_the_chat_template_and_tokens_come_from_the_configuration(tmp_path):
    config = {"chat_template": "{{ messages }}", "bos_token": {"content": "b"}, "eos_token": "a"}
    tokenizer = vocab(config=json.dumps(config).encode())
    assert tokenizer.chat_template == "{{ messages }}"
    assert (tokenizer.bos_id, tokenizer.eos_id) == (1, 0)
    (tmp_path / "vocab.json").write_text(json.dumps(VOCAB))
    (tmp_path / "merges.txt").write_text("a b\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    beside = get_tokenizer(tmp_path)
    assert beside.chat_template == "{{ messages }}"
    assert beside.encode("ab ab", bos=1) == [1, 2, 3, 2]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\x00" * 100,
        b'{"a": -1}',
        b'{"a": 99999999999}',
        b'{"a": 1, "b": 1}',
        b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a z"]}}',
        b'{"model": {"type": "Unigram", "vocab": [["a", 1e999]], "unk_id": 0}}',
        b'{"model": {"type": "Unigram", "vocab": [["a", 0.5]], "unk_id": 7}}',
        b'{"model": {"type": "WordPiece", "vocab": {"a": 0}}}',
        b"IQ== 0\nIQ== 1\n",
        b"IQ=! 0\n",
        b"IQ== x\n",
        b"\x0a\xff\xff\xff\xff\x0f",
    ],
)
def test_damaged_files_are_refused_with_a_reason(content):
    with pytest.raises(ValueError, match="tokenizer") as refused:
        load_bytes(content)
    assert len(str(refused.value)) > 20


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no/such/file"):
        load_file("no/such/file")
    with pytest.raises(ValueError, match="\ufffd/no/such/file: No such file"):
        load_file("\udcff/no/such/file")


def test_unknown_tokens_are_errors():
    tokenizer = vocab()
    for use in (tokenizer.token_bytes, tokenizer.id_to_piece):
        with pytest.raises(ValueError):
            use(2**63)
    with pytest.raises(ValueError):
        tokenizer.decode([1 << 40])


def test_a_hostile_pattern_ends():
    lines = b"".join(b"%s %d\n" % (p, i) for i, p in enumerate([b"YQ==", b"Yg=="]))
    tokenizer = load_bytes(lines, pattern="(?:(?:a*)*)*b(?=c)|(?:a|a)*c")
    with pytest.raises(ValueError):
        tokenizer.encode("a" * 5000)


def test_a_megabyte_of_one_letter_takes_no_quadratic_time():
    tokenizer = vocab(b"a b\n")
    assert len(tokenizer.encode("a" * 1_000_000)) == 1_000_000
