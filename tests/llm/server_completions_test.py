"""Completions of the server: prompts, their probabilities, and what is made of them."""

from __future__ import annotations

import openai
import pytest

from tests.built import needs
from tests.llm.scripted_server import SCRIPTED, Server

pytestmark = needs(SCRIPTED)


def test_openai_client_completes(server: Server) -> None:
    client = server.client()
    answer = client.completions.create(model="scripted", prompt="abc", echo=True, max_tokens=2)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("abcAB", "length")
    answer = client.completions.create(model="scripted", prompt=[97, 98], echo=True)
    assert answer.choices[0].text == "abAB"
    tokens = client.completions.create(model="scripted", prompt=[97, 98], logprobs=1)
    assert tokens.choices[0].text == "AB"
    assert tokens.choices[0].logprobs.tokens == ["A", "B"]
    parts = client.completions.create(model="scripted", prompt="xyz", stream=True)
    assert "".join(p.choices[0].text for p in parts) == "XYZ"


def test_probabilities_of_completions_have_places(server: Server) -> None:
    client = server.client()
    options = {"model": "scripted", "prompt": "aü€b", "logprobs": 20}
    whole = client.completions.create(**options).choices[0]
    # A token is a byte: those of a character have its place.
    assert whole.text == "Aü€B"
    assert whole.logprobs.text_offset == [0, 1, 1, 2, 2, 2, 3]
    parts = list(client.completions.create(stream=True, **options))
    told = [o for p in parts if p.choices[0].logprobs for o in p.choices[0].logprobs.text_offset]
    assert told == whole.logprobs.text_offset


def test_prompts_that_are_echoed_have_probabilities(server: Server) -> None:
    client = server.client()
    options = {"model": "scripted", "prompt": "aü", "logprobs": 1, "echo": True}
    whole = client.completions.create(max_tokens=2, **options).choices[0]
    assert (whole.text, whole.finish_reason) == ("aüA\ufffd", "length")
    told = whole.logprobs
    assert told.tokens[0] == "a" and len(told.tokens) == 5
    assert told.text_offset == [0, 1, 1, 2, 3]
    # Nothing comes before the first token.
    assert told.token_logprobs[0] is None and told.top_logprobs[0] is None
    assert all(p < 0 for p in told.token_logprobs[1:])
    assert told.top_logprobs[3]["A"] == told.token_logprobs[3]
    parts = list(client.completions.create(max_tokens=2, stream=True, **options))
    assert parts[0].choices[0].text == "aü"
    streamed = [p.choices[0].logprobs for p in parts if p.choices[0].logprobs]
    assert [p for each in streamed for p in each.token_logprobs] == told.token_logprobs
    assert [o for each in streamed for o in each.text_offset] == told.text_offset
    # No tokens but those of the prompt.
    only = client.completions.create(max_tokens=0, **options)
    assert (only.choices[0].text, only.choices[0].finish_reason) == ("aü", "length")
    assert only.choices[0].logprobs.token_logprobs == told.token_logprobs[:3]
    assert (only.usage.prompt_tokens, only.usage.completion_tokens) == (3, 0)
    nothing = client.completions.create(model="scripted", prompt="a", max_tokens=0)
    assert nothing.choices[0].text == ""


def test_several_prompts_are_answered_in_order(server: Server) -> None:
    client = server.client()
    options = {"model": "scripted", "prompt": ["ab", "x", "cde"], "n": 2, "max_tokens": 9}
    answer = client.completions.create(**options)
    texts = ["AB", "AB", "X", "X", "CDE", "CDE"]
    assert [(c.index, c.text) for c in answer.choices] == list(enumerate(texts))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (6, 12)
    parts = list(client.completions.create(stream=True, **options))
    for index, text in enumerate(texts):
        own = [p.choices[0] for p in parts if p.choices[0].index == index]
        assert "".join(c.text for c in own) == text and own[-1].finish_reason == "stop"
    tokens = client.completions.create(
        model="scripted", prompt=[[97, 98], [99]], echo=True, logprobs=0, max_tokens=1
    )
    assert [c.text for c in tokens.choices] == ["abA", "cC"]
    assert [c.logprobs.text_offset for c in tokens.choices] == [[0, 1, 2], [0, 1]]
    with pytest.raises(openai.BadRequestError, match="4096 are possible") as caught:
        client.completions.create(model="scripted", prompt=["a", "x" * 5000])
    assert caught.value.param == "prompt"
