"""`executorch serve` with the model that the repository ships."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import openai
import pytest
import torch
from torch.export import Dim, export

from executorch.exir import make_incremental, to_edge
from tests.built import COMMAND, ROOT, needs
from tests.modules import load

NANOGPT = ROOT / "examples" / "nanogpt"
pytestmark = needs(COMMAND)


@pytest.fixture(scope="module")
def model() -> Any:
    return load(NANOGPT / "model.py").GPT.from_file(NANOGPT / "nanogpt.safetensors").eval()


@pytest.fixture(scope="module")
def client(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    length = model.config.block_size
    tokens = torch.randint(0, model.config.vocab_size, (1, length))
    exported = export(model, (tokens,), dynamic_shapes=({1: Dim("length", max=length)},))
    vocabulary = json.loads((NANOGPT / "vocab.json").read_text())
    metadata = {
        "get_max_context_len": length,
        "get_max_seq_len": length,
        "get_eos_ids": [vocabulary["<|endoftext|>"]],
    }
    program = to_edge(make_incremental(exported), constant_methods=metadata).to_executorch()
    path = tmp_path_factory.mktemp("serve") / "nanogpt.pte"
    path.write_bytes(program.buffer)
    command = [COMMAND, "serve", path, "--tokenizer", NANOGPT / "vocab.json", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"at (http://127\.0\.0\.1:\d+) ", said)
        assert found, said
        yield openai.OpenAI(base_url=f"{found[1]}/v1", api_key="none", max_retries=0, timeout=60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def greedy(model: Any, tokens: list[int], n: int) -> list[int]:
    for _ in range(n):
        with torch.no_grad():
            outputs = model(torch.tensor([tokens]))
        logits = outputs[0] if isinstance(outputs, tuple) else outputs
        tokens = [*tokens, int(logits.reshape(-1, logits.shape[-1])[-1].argmax())]
    return tokens[-n:]


def test_greedy_answers_are_those_of_eager(client: Any, model: Any) -> None:
    prompt = [10, 200, 300, 41, 7]
    expected = greedy(model, prompt, 24)
    options = {"model": "nanogpt", "temperature": 0, "max_tokens": 24, "logprobs": 1}
    whole = client.completions.create(prompt=prompt, **options)
    assert whole.usage.completion_tokens == len(expected)
    parts = list(client.completions.create(prompt=prompt, stream=True, **options))
    assert "".join(p.choices[0].text for p in parts) == whole.choices[0].text
    spelled = {
        token: bytes(byte_of_character()[c] for c in text)
        for text, token in json.loads((NANOGPT / "vocab.json").read_text()).items()
        if text != "<|endoftext|>"
    }
    text = b"".join(spelled[token] for token in expected).decode(errors="replace")
    assert whole.choices[0].text == text
    # A text that goes on finds what was computed.
    longer = [*prompt, *expected[:-1]]
    again = client.completions.create(prompt=longer, **options)
    assert again.usage.prompt_tokens_details.cached_tokens >= len(longer) - 1


def test_prompts_have_the_probabilities_of_eager(client: Any, model: Any) -> None:
    prompts = [[10, 200, 300, 41, 7], [5, 6], [300] * 20]
    answer = client.completions.create(
        model="nanogpt", prompt=prompts, echo=True, logprobs=2, max_tokens=1, temperature=0
    )
    assert len(answer.choices) == len(prompts)
    for prompt, choice in zip(prompts, answer.choices, strict=True):
        tokens = [*prompt, *greedy(model, prompt, 1)]
        with torch.no_grad():
            # The model gives the logits of all positions where it is given targets.
            logits, _ = model(torch.tensor([tokens]), torch.tensor([tokens]))
        expected = logits[0].log_softmax(-1)
        told = choice.logprobs
        assert told.token_logprobs[0] is None and len(told.token_logprobs) == len(tokens)
        for i in range(1, len(tokens)):
            of_token = float(expected[i - 1, tokens[i]])
            assert told.token_logprobs[i] == pytest.approx(of_token, abs=1e-4)
            best = float(expected[i - 1].max())
            assert max(told.top_logprobs[i].values()) == pytest.approx(best, abs=1e-4)
    assert answer.usage.prompt_tokens == sum(map(len, prompts))


def test_the_best_of_several_answers_is_the_likeliest(client: Any) -> None:
    def ask(**options: Any) -> Any:
        return client.completions.create(
            model="nanogpt", prompt="To be or not", max_tokens=6, seed=3, logprobs=0, **options
        ).choices

    def mean(choice: Any) -> float:
        told = choice.logprobs.token_logprobs
        return sum(told) / len(told)

    all_made = sorted(ask(n=6), key=mean, reverse=True)
    best = ask(n=2, best_of=6)
    assert [c.text for c in best] == [c.text for c in all_made[:2]]
    assert [c.index for c in best] == [0, 1]


def byte_of_character() -> dict[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


@pytest.mark.parametrize("seed", range(4))
def test_answers_follow_a_schema(client: Any, seed: int) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 1, "maximum": 99},
            "kind": {"enum": ["king", "fool"]},
        },
        "required": ["name", "age", "kind"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model="nanogpt",
        messages=[{"role": "user", "content": "Who art thou?"}],
        seed=seed,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "person", "schema": schema, "strict": True},
        },
    )
    assert answer.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(answer.choices[0].message.content), schema)


def test_conversations_are_kept_apart(client: Any) -> None:
    def ask(words: str) -> Any:
        return client.completions.create(
            model="nanogpt", prompt=words, temperature=0, max_tokens=10
        )

    first = ask("To be or not to be")
    second = ask("Once more unto the breach")
    assert ask("To be or not to be").choices[0].text == first.choices[0].text
    assert ask("Once more unto the breach").choices[0].text == second.choices[0].text


def test_choices_are_those_of_seeds_that_follow(client: Any) -> None:
    def ask(seed: int, **options: Any) -> list[str]:
        answer = client.completions.create(
            model="nanogpt", prompt="To be or not", max_tokens=12, seed=seed, **options
        )
        assert answer.usage.completion_tokens <= 12 * len(answer.choices)
        return [choice.text for choice in answer.choices]

    choices = ask(5, n=3)
    assert choices == [*ask(5), *ask(6), *ask(7)]
    assert len(set(choices)) == 3
    parts = list(
        client.completions.create(
            model="nanogpt", prompt="To be or not", max_tokens=12, seed=5, n=3, stream=True
        )
    )
    streamed = [
        "".join(p.choices[0].text for p in parts if p.choices[0].index == i) for i in range(3)
    ]
    assert streamed == choices


class Alphabet(torch.nn.Module):
    """The next token is the one after the last, and the first one after the 27th."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot((ids[:, -1:] + 1) % 27, 28).float()


def test_chats_end_at_the_special_token_of_the_template(tmp_path: Path) -> None:
    letters = {chr(ord("a") + i): i for i in range(26)}
    special = [
        {"id": i, "content": text, "special": True, "normalized": False, "lstrip": False,
         "rstrip": False, "single_word": False}
        for i, text in ((26, "<|im_end|>"), (27, "<|endoftext|>"))
    ]  # fmt: skip
    model = {"type": "BPE", "vocab": letters | {t["content"]: t["id"] for t in special}}
    tokenizer = {"version": "1.0", "added_tokens": special, "model": model | {"merges": []}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    ids = torch.zeros(1, 9, dtype=torch.int64)
    exported = export(Alphabet(), (ids,), dynamic_shapes=({1: Dim("tokens", max=64)},))
    # The program knows of the other token only.
    program = to_edge(exported, constant_methods={"get_eos_ids": [27]}).to_executorch()
    (tmp_path / "model.pte").write_bytes(program.buffer)
    template = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    command = [COMMAND, "serve", "model.pte", "--tokenizer", "tokenizer.json", "--port", "0"]
    with subprocess.Popen(
        [*command, "--template", template], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"at (http://127\.0\.0\.1:\d+) ", process.stdout.readline())
        assert found
        client = openai.OpenAI(base_url=f"{found[1]}/v1", api_key="none", timeout=60)
        answer = client.chat.completions.create(
            model="model", messages=[{"role": "user", "content": "x"}], max_tokens=40, temperature=0
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert answer.choices[0].message.content.split() == list(letters)
    assert answer.choices[0].finish_reason == "stop"


def test_programs_that_cannot_be_served_are_errors(tmp_path: Path) -> None:
    missing = subprocess.run(
        [COMMAND, "serve", tmp_path / "none.pte"], capture_output=True, text=True, timeout=60
    )
    assert missing.returncode == 1
    assert "none.pte" in missing.stderr
