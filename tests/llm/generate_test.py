"""`executorch generate` and `executorch chat` on small models, against eager greedy search."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import make_incremental, to_edge
from executorch.extension.llm.packaging import with_tokenizer
from tests.built import COMMAND, needs
from tests.incremental.models import (
    BLOCK,
    HEADS,
    MOST_TOKENS,
    VOCABULARY,
    WIDTH,
    AllPositions,
    LastByIndex,
    Model,
    Rotary,
    Window,
)

pytestmark = needs(COMMAND)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
KINDS = (Model, Rotary, Window, AllPositions, LastByIndex)
KEYS = [
    "text",
    "tokens",
    "prompt_tokens",
    "ended_by",
    "load_seconds",
    "time_to_first_token_seconds",
    "prefill_tokens_per_second",
    "decode_tokens_per_second",
    "resident_mb",
]


def made(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(3)
    return kind().eval()


def program_of(model: nn.Module, incremental: bool, **methods: object) -> bytes:
    ids = torch.zeros(1, 9, dtype=torch.int64)
    exported = export(model, (ids,), dynamic_shapes=({1: Dim("tokens", max=MOST_TOKENS)},))
    if incremental:
        exported = make_incremental(exported)
    return to_edge(exported, constant_methods=methods or None).to_executorch().buffer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llm")
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)}
    vocabulary["<|endoftext|>"] = len(LETTERS)
    assert len(vocabulary) == VOCABULARY
    (path / "vocab.json").write_text(json.dumps(vocabulary))
    for kind in KINDS:
        for incremental in (True, False):
            name = f"{kind.__name__}-{'incremental' if incremental else 'stateless'}.pte"
            (path / name).write_bytes(program_of(made(kind), incremental))
    return path


def run(folder: Path, *arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(COMMAND), *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, text=True, timeout=120
    )


def generate(folder: Path, program: str, *arguments: object, stdin: str = "") -> dict:
    done = run(
        folder, "generate", program, "--tokenizer", "vocab.json", "--json", *arguments, stdin=stdin
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == KEYS
    return found


def logits_of(model: nn.Module, ids: list[int]) -> Tensor:
    result = model(torch.tensor([ids]))
    logits = result if isinstance(result, Tensor) else result[0]
    return logits.reshape(-1, VOCABULARY)[-1]


def greedy(model: nn.Module, prompt: str, n: int, half: bool = False) -> str:
    """Eager search, forgetting what the window forgets."""
    ids = [LETTERS.index(c) for c in prompt]
    begin = 0
    with torch.no_grad():
        for _ in range(n):
            if len(ids) - begin > MOST_TOKENS:
                begin = len(ids) - ((MOST_TOKENS + 1) // 2 if half else MOST_TOKENS)
            logits = logits_of(model, ids[begin:])
            logits[len(LETTERS)] = -torch.inf  # the end of the text, which --bias excludes, too
            ids.append(int(logits.argmax()))
    return "".join(LETTERS[i] for i in ids[len(prompt) :])


GREEDY = ("--temperature", 0, "--bias", f"{len(LETTERS)}:-1e9")


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_five_hundred_tokens_are_those_of_eager(folder: Path, kind: type[nn.Module]) -> None:
    expected = greedy(made(kind), "hello", 500)
    for form in ("incremental", "stateless"):
        found = generate(
            folder, f"{kind.__name__}-{form}.pte", "--prompt", "hello", "--tokens", 500,
            "--window", "exact", *GREEDY,
        )  # fmt: skip
        assert found["tokens"] == 500
        assert found["text"] == expected, form


def test_half_of_the_window_is_dropped_at_a_time(folder: Path) -> None:
    found = generate(
        folder, "Rotary-incremental.pte", "--prompt", "hello", "--tokens", 200, "--window", "half",
        *GREEDY,
    )  # fmt: skip
    assert found["text"] == greedy(made(Rotary), "hello", 200, half=True)


def test_text_ends_with_the_context(folder: Path) -> None:
    found = generate(folder, "Model-incremental.pte", "--prompt", "hello", *GREEDY)
    assert found["tokens"] == MOST_TOKENS + 1 - len("hello")
    done = run(
        folder, "generate", "Model-incremental.pte", "--tokenizer", "vocab.json",
        "--prompt", "a" * (MOST_TOKENS + 1),
    )  # fmt: skip
    assert done.returncode == 1
    assert f"the prompt has {MOST_TOKENS + 1} tokens" in done.stderr


def test_drafts_change_nothing(folder: Path) -> None:
    arguments = ("--prompt", "abcabcabc", "--tokens", 30, *GREEDY)
    for form in ("incremental", "stateless"):
        program = f"AllPositions-{form}.pte"
        plain = generate(folder, program, *arguments)
        drafted = generate(folder, program, *arguments, "--draft", 4)
        assert drafted["text"] == plain["text"]


def test_a_seed_gives_one_text_with_any_number_of_threads(folder: Path) -> None:
    def text(seed: int, threads: int) -> str:
        return generate(
            folder, "Model-incremental.pte", "--prompt", "hi", "--tokens", 30, "--temperature", 1.5,
            "--top-k", 40, "--top-p", 0.95, "--seed", seed, "--threads", threads,
        )["text"]  # fmt: skip

    assert text(1, 1) == text(1, 2)
    assert text(1, 1) != text(2, 1)


def test_stop_strings_are_not_printed(folder: Path) -> None:
    full = greedy(made(Model), "hello", 30)
    stop = full[10:13]
    for flags in (["--json"], []):
        done = run(
            folder, "generate", "Model-incremental.pte", "--tokenizer", "vocab.json", "--prompt",
            "hello", "--tokens", 30, *GREEDY, "--stop", stop, *flags,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = json.loads(done.stdout)["text"] if flags else done.stdout.removesuffix("\n")
        assert text == full[: full.index(stop)]


def test_json_tells_a_whole_text_from_one_that_was_cut(folder: Path) -> None:
    options = ("Model-incremental.pte", "--prompt", "hello", "--seed", 1, "--regex", "[a-z]{5}")
    cut = generate(folder, *options, "--tokens", 3)
    assert (cut["tokens"], cut["prompt_tokens"], cut["ended_by"]) == (3, 5, "length")
    assert generate(folder, *options, "--tokens", 30)["ended_by"] == "complete"


def test_texts_are_what_an_expression_or_a_schema_asks_for(folder: Path) -> None:
    (folder / "boolean.json").write_text('{"type": "boolean"}')
    program = "Model-incremental.pte"
    for seed in range(5):
        sampled = ("--prompt", "hello", "--tokens", 30, "--temperature", 3, "--seed", seed)
        text = generate(folder, program, *sampled, "--regex", "(ab|cd){2,4}[x-z]")["text"]
        assert re.fullmatch("(ab|cd){2,4}[x-z]", text)
        text = generate(folder, program, *sampled, "--json-schema", "boolean.json")["text"]
        assert text in ("true", "false")
    (folder / "damaged_schema.json").write_text('{"type": "bool')
    for options, cause in (
        (["--regex", "("], "--regex: "),
        (["--json-schema", "damaged_schema.json"], "--json-schema damaged_schema.json: "),
        (["--json-schema", "none.json"], "cannot read none.json"),
        (["--json-schema", "."], "cannot read .: Is a directory"),
    ):
        done = run(
            folder, "generate", program, "--tokenizer", "vocab.json", "--prompt", "a", *options
        )
        assert done.returncode == 1 and cause in done.stderr, done.stderr


def test_prompts_from_files_and_stdin(folder: Path) -> None:
    (folder / "prompt.txt").write_text("hello")
    expected = greedy(made(Model), "hello", 8)
    arguments = ("--tokens", 8, *GREEDY)
    program = "Model-incremental.pte"
    from_file = generate(folder, program, "--prompt-file", "prompt.txt", *arguments)
    assert from_file["text"] == expected
    assert generate(folder, program, *arguments, stdin="hello")["text"] == expected
    echoed = generate(folder, program, "--prompt", "hello", "--echo", *arguments)
    assert echoed["text"] == "hello" + expected
    done = run(folder, "generate", program, "--tokenizer", "vocab.json", "--prompt-file", ".")
    assert done.returncode == 1 and "cannot read .: Is a directory" in done.stderr


def test_streams_that_are_closed_are_no_files(folder: Path) -> None:
    """A program that is opened in the place of stdin would be read as the prompt."""
    command = f"{COMMAND} generate Model-incremental.pte --tokenizer vocab.json --tokens 1"

    def shell(redirected: str) -> subprocess.CompletedProcess[str]:
        line = f"{command} {redirected}"
        return subprocess.run(
            ["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120
        )

    done = shell("<&-")
    assert done.returncode == 1 and "the prompt is empty" in done.stderr, done.stderr
    before = (folder / "Model-incremental.pte").read_bytes()
    assert shell("--prompt a >&-").returncode == 1
    assert shell("--prompt a 2>&-").returncode == 0
    assert (folder / "Model-incremental.pte").read_bytes() == before


def test_end_of_text_by_metadata(folder: Path) -> None:
    expected = greedy(made(Model), "hello", 20)
    end = expected[7]
    (folder / "ends.pte").write_bytes(
        program_of(made(Model), True, get_eos_ids=[LETTERS.index(end)])
    )
    found = generate(folder, "ends.pte", "--prompt", "hello", "--tokens", 20, *GREEDY)
    assert found["text"] == expected[: expected.index(end)]
    found = generate(
        folder, "ends.pte", "--prompt", "hello", "--tokens", 20, *GREEDY, "--ignore-eos"
    )
    assert found["text"] == expected


class Cached(Model):
    """The same model over caches: new tokens, and the position of the first."""

    def __init__(self) -> None:
        super().__init__()
        for i in range(len(self.layers)):
            shape = (1, HEADS, BLOCK, WIDTH // HEADS)
            self.register_buffer(f"keys{i}", torch.zeros(shape))
            self.register_buffer(f"values{i}", torch.zeros(shape))

    def forward(self, ids: Tensor, start: Tensor) -> Tensor:
        return self.continued(ids, start + torch.arange(ids.shape[1]))

    def continued(self, ids: Tensor, at: Tensor) -> Tensor:
        b, n = ids.shape
        x = self.embedding(ids) + self.position(at)
        mask = torch.arange(BLOCK)[None, :] <= at[:, None]
        for i, (qkv, out) in enumerate(self.layers):  # type: ignore[misc,arg-type]
            parts = qkv(self.norm(x)).split(WIDTH, 2)
            q, k, v = (t.view(b, n, HEADS, WIDTH // HEADS).transpose(1, 2) for t in parts)
            keys, values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
            keys[:, :, at] = k
            values[:, :, at] = v
            y = nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            x = x + out(y.transpose(1, 2).reshape(b, n, WIDTH))
        return self.head(x[:, -1])


class CachedByPosition(Cached):
    """The position of each token."""

    def forward(self, ids: Tensor, start: Tensor) -> Tensor:
        return self.continued(ids, start)


@pytest.mark.parametrize("form", ["start", "positions", "one_token"])
def test_programs_over_caches(folder: Path, form: str) -> None:
    model = made(CachedByPosition if form == "positions" else Cached)
    n = Dim("n", max=16)
    ids = torch.zeros(1, 1 if form == "one_token" else 5, dtype=torch.int64)
    at = torch.arange(5) if form == "positions" else torch.zeros(1, dtype=torch.int64)
    shapes = ({1: n}, {0: n} if form == "positions" else None)
    exported = export(model, (ids, at), dynamic_shapes=None if form == "one_token" else shapes)
    methods = {"get_max_context_len": MOST_TOKENS, "get_max_seq_len": 16, "use_kv_cache": True}
    (folder / f"{form}.pte").write_bytes(
        to_edge(exported, constant_methods=methods).to_executorch().buffer
    )
    prompt = "hellohellohellohello"  # two chunks
    found = generate(folder, f"{form}.pte", "--prompt", prompt, *GREEDY)
    n_new = MOST_TOKENS + 1 - len(prompt)
    assert found["text"] == greedy(made(Model), prompt, n_new)
    found = generate(
        folder, f"{form}.pte", "--prompt", prompt, "--tokens", 60, "--window", "half", *GREEDY
    )
    assert found["text"] == greedy(made(Model), prompt, 60, half=True)


def test_the_tokenizer_inside_of_the_program(folder: Path) -> None:
    plain = (folder / "Model-incremental.pte").read_bytes()
    whole = with_tokenizer(plain, folder / "vocab.json", chat_template="plain")
    (folder / "whole.pte").write_bytes(with_tokenizer(whole, folder / "vocab.json"))  # replaced
    done = run(
        folder, "generate", "whole.pte", "--prompt", "hello", "--tokens", 9, *GREEDY, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == greedy(made(Model), "hello", 9)
    done = run(folder, "generate", "Model-incremental.pte", "--prompt", "hello")
    assert done.returncode == 1
    assert "Model-incremental.pte has no tokenizer inside" in done.stderr


class Picture(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class Fixed(nn.Module):
    def forward(self, ids: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(ids, VOCABULARY).float()


def test_programs_that_are_no_language_models(folder: Path) -> None:
    image = to_edge(export(Picture(), (torch.zeros(1, 3, 8, 8),))).to_executorch().buffer
    (folder / "image.pte").write_bytes(image)
    ids = torch.zeros(1, 6, dtype=torch.int64)
    (folder / "fixed.pte").write_bytes(to_edge(export(Fixed(), (ids,))).to_executorch().buffer)
    (folder / "text.pte").write_text("this is no program")
    for name, cause in {
        "image.pte": "its input 0 (x) is Float [1, 3, 8, 8]",
        "fixed.pte": "it takes exactly 6 tokens",
        "text.pte": "text.pte",
        "missing.pte": "missing.pte",
    }.items():
        done = run(folder, "generate", name, "--tokenizer", "vocab.json", "--prompt", "a")
        assert done.returncode == 1, name
        assert cause in done.stderr
        assert name in done.stderr


def test_no_rates_of_what_was_not_computed(folder: Path) -> None:
    arguments = ("--prompt", "hello", *GREEDY)
    rates = ("time_to_first_token_seconds", *(key for key in KEYS if "per_second" in key))
    found = generate(folder, "Model-incremental.pte", "--tokens", 0, *arguments)
    assert (found["tokens"], found["ended_by"]) == (0, "length")
    assert [found[rate] for rate in rates] == [None, None, None]
    found = generate(folder, "Model-incremental.pte", "--tokens", 1, *arguments)
    assert found[rates[1]] > 0 and found[rates[2]] is None
    vocabulary = ("--tokenizer", "vocab.json")
    done = run(folder, "generate", "Model-incremental.pte", *vocabulary, "--tokens", 0, *arguments)
    assert done.stderr == "5 tokens of prompt; 0 new; ended by length\n"
    done = run(
        folder, "chat", "Model-incremental.pte", *vocabulary, "--json", "--tokens", 0,
        "--template", "{{ messages[0].content }}", stdin="hello\n",
    )  # fmt: skip
    assert [json.loads(done.stdout)[rate] for rate in rates] == [None, None, None], done.stderr


def test_directories_of_tokenizers(folder: Path) -> None:
    arguments = ("generate", "Model-incremental.pte", "--prompt", "hello", "--tokens", 3, *GREEDY)
    expected = greedy(made(Model), "hello", 3)
    assert run(folder, *arguments, "--tokenizer", ".").stdout == expected + "\n"
    (folder / "empty").mkdir()
    done = run(folder, *arguments, "--tokenizer", "empty")
    assert done.returncode == 1
    assert "empty is a directory without a tokenizer; expected one of tokenizer.json" in done.stderr


def test_damaged_tokenizers_and_options(folder: Path) -> None:
    (folder / "damaged.json").write_text('{"a": 0, "b": ')
    program = "Model-incremental.pte"
    done = run(folder, "generate", program, "--tokenizer", "damaged.json", "--prompt", "a")
    assert done.returncode == 1 and "damaged.json" in done.stderr
    unknown = f"60000, which is not in the vocabulary of {VOCABULARY}"
    for option, value, code, cause in (
        ("--top-p", "1.5", 2, "top_p is 1.5"),
        ("--bias", "x:1", 2, "--bias is 'x:1'"),
        ("--bias", "60000:1", 1, f"token {unknown}"),
        ("--stop-token", "60000", 1, unknown),
        ("--temperature", "nan", 2, "temperature"),
    ):
        done = run(
            folder, "generate", program, "--tokenizer", "vocab.json", "--prompt", "a", option, value
        )
        assert done.returncode == code and cause in done.stderr
    (folder / "no_begin.json").write_text(json.dumps({letter: i for i, letter in enumerate("abc")}))
    prompt = ("--tokens", 1, "--prompt", "ab", "--bos")
    for n in (5, 1):
        done = run(folder, "generate", program, "--tokenizer", "no_begin.json", *prompt, n)
        cause = f"--bos is {n}, but the tokenizer names no beginning-of-text token"
        assert done.returncode == 1 and cause in done.stderr, done.stderr
    done = run(folder, "generate", program, "--tokenizer", "no_begin.json", *prompt, 0)
    assert done.returncode == 0, done.stderr
    assert generate(folder, program, *prompt, 5)["prompt_tokens"] == 7
    done = run(folder, "generate", program, "--tokenizer", "vocab.json", stdin="")
    assert done.returncode == 1 and "the prompt is empty" in done.stderr
    bias = ("--bias", "1:5", "--bias", "2:1", "--bias", "1:4")
    done = run(folder, "generate", program, "--tokenizer", "vocab.json", "--prompt", "a", *bias)
    assert done.returncode == 2 and "--bias is given twice for token 1" in done.stderr
    for option, value in (
        ("--seed", "-1"),
        ("--seed", "18446744073709551616"),
        ("--seed", "1x"),
        ("--stop-token", "-1"),
        ("--regex", ""),
        ("--json-schema", ""),
    ):
        done = run(folder, "generate", program, "--prompt", "a", option, value)
        assert done.returncode == 2 and option in done.stderr, (option, value, done.stderr)
    largest = ("--seed", "18446744073709551615", "--tokens", 1)
    generate(folder, program, "--prompt", "a", *largest)


def test_chat_templates_read_variables(folder: Path) -> None:
    program = ("chat", "Model-incremental.pte", "--tokenizer", "vocab.json", "--tokens", 3, *GREEDY)
    template = ("--template", "{{ messages[0].content if plain else word }}")

    def answer(kwargs: str) -> subprocess.CompletedProcess[str]:
        given = ("--chat-template-kwargs", kwargs)
        return run(folder, *program, *template, *given, stdin="hello\n")

    for kwargs, prompt in (('{"plain": true}', "hello"), ('{"word": "world"}', "world")):
        done = answer(kwargs)
        assert done.stdout == greedy(made(Model), prompt, 3) + "\n", done.stderr
    for damaged in ("[1]", '{"plain": tr'):
        done = answer(damaged)
        assert done.returncode == 1 and f"is {damaged}; expected a JSON object" in done.stderr


def test_chat_answers_each_line(folder: Path) -> None:
    class Pairs(nn.Module):
        """The next letter is the one after the last."""

        def forward(self, ids: Tensor) -> Tensor:
            after = (ids[:, -1:] + 1) % len(LETTERS)
            return torch.nn.functional.one_hot(after, 96).float()

    exported = export(
        Pairs(),
        (torch.zeros(1, 9, dtype=torch.int64),),
        dynamic_shapes=({1: Dim("tokens", max=64)},),
    )
    (folder / "pairs.pte").write_bytes(to_edge(exported).to_executorch().buffer)
    texts = LETTERS + "XYZ \n:'.,<>|/0123456789"
    vocabulary = {c.replace(" ", "\u0120").replace("\n", "\u010a"): i for i, c in enumerate(texts)}
    (folder / "chat.json").write_text(json.dumps(vocabulary))
    arguments = ("chat", "pairs.pte", "--tokenizer", "chat.json", "--tokens", 3, "--temperature", 0)
    done = run(folder, *arguments, stdin="a\n")
    assert done.returncode == 1 and "--template" in done.stderr
    done = run(
        folder, *arguments, "--template", "plain", "--json", stdin="a\n\n/reset\nb\n/quit\nc\n"
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2
    assert all(list(a) == KEYS and a["tokens"] == 3 for a in answers)
    # What is too long is refused, and the conversation goes on as if it had not been asked.
    long = "a" * 100
    for flags in ([], ["--json"]):
        asked = [
            run(folder, *arguments, "--template", "plain", *flags, stdin=lines)
            for lines in (f"a\n{long}\nb\n", "a\nb\n")
        ]
        assert all(done.returncode == 0 for done in asked)
        assert "the question is too long" in asked[0].stderr
        texts = [
            [json.loads(line)["text"] if flags else line for line in done.stdout.splitlines()]
            for done in asked
        ]
        assert len(texts[0]) == 2 and texts[0] == texts[1]


def test_ctrl_c_ends_the_answer(folder: Path) -> None:
    command = [
        str(COMMAND), "generate", "Model-incremental.pte", "--tokenizer", "vocab.json", "--prompt",
        "hello", "--tokens", "100000000", "--window", "half", "--json", "--ignore-eos",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["tokens"] > 0
