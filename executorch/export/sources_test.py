"""What a MODEL on the command line stands for, and the inputs that are inferred for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.export import export
from executorch.export.__main__ import main
from executorch.export.infer_inputs import takes_tokens
from executorch.export.sources import find_source
from executorch.runtime import Runtime

VOCABULARY, LENGTH = 60, 40


class Text(nn.Module):
    """tokens [b, t] to (logits [b, t, vocabulary], None), as models that also compute losses."""

    causal = True
    block_size = LENGTH

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(VOCABULARY, 16), nn.Embedding(LENGTH, 16)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, VOCABULARY)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.words(idx) + self.places(torch.arange(idx.shape[1]))
        q, k, v = (y[:, None] for y in self.qkv(x).split(16, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)[:, 0]
        return self.head(x + y), None


class TextUnsaid(Text):
    """It does not say how many places it has."""

    block_size = None  # type: ignore[assignment]


class AnyLength(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Embedding(VOCABULARY, 4), nn.Linear(4, VOCABULARY))


class BothWays(Text):
    """Every token attends to all others."""

    causal = False


class Wants(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()


class Pair(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b


def raises() -> nn.Module:
    raise RuntimeError("no weights")


class Breaks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("not today")


compiled = torch.compile(Text())
image = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 62 * 62, 2))
number = 3


def given_compiled() -> tuple[nn.Module, Any, Any]:
    return compiled, *given()[1:]  # type: ignore[return-value]


def given() -> tuple[nn.Module, Any, Any]:
    return Text(), (torch.ones(1, 5, dtype=torch.int64),), ({1: Dim("t", max=LENGTH)},)


def test_a_class_that_takes_tokens_gets_a_dynamic_length() -> None:
    source = find_source(f"{__file__}:Text")
    assert source.takes_tokens
    (tokens,) = source.inputs[0]
    assert tokens.dtype == torch.int64 and 1 < tokens.shape[1] < LENGTH
    assert source.constant_methods["get_vocab_size"] == VOCABULARY
    assert source.constant_methods["get_max_seq_len"] == LENGTH
    assert isinstance(source.model(tokens), Tensor)
    shorter = find_source(f"{__file__}:Text", max_length=7, last_only=True)
    assert shorter.constant_methods["get_max_seq_len"] == 7
    assert shorter.model(tokens).shape == (1, 1, VOCABULARY)


def test_a_length_that_is_not_said_is_the_longest_that_is_computed() -> None:
    source = find_source(f"{__file__}:TextUnsaid")
    assert source.constant_methods["get_max_seq_len"] == LENGTH
    shorter = find_source(f"{__file__}:TextUnsaid", max_length=7)
    assert shorter.constant_methods["get_max_seq_len"] == 7
    assert find_source(f"{__file__}:AnyLength").constant_methods["get_max_seq_len"] == 1024


def test_modules_and_functions_are_taken_as_they_are() -> None:
    source = find_source(f"{__file__}:image")
    assert source.inputs[0][0].shape == (1, 3, 64, 64) and not source.takes_tokens
    source = find_source(f"{__file__}:given")
    assert source.takes_tokens and len(source.inputs) == 1
    assert find_source(f"{__file__}:compiled").takes_tokens
    assert type(find_source(f"{__file__}:given_compiled").model).__name__ == "Text"


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return self.layer(x) + self.calls


def test_inputs_are_tried_without_leaving_a_trace_in_the_model() -> None:
    source = find_source(f"{__file__}:Counts")
    assert source.model.calls.tolist() == [0]


def test_an_import_path_may_have_dots_alone() -> None:
    assert find_source("tests.llm.tiny_text.TinyText").takes_tokens


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (f"{__file__}:nothing", {}, "no function 'nothing'"),
        (f"{__file__}:number", {}, "found int"),
        (f"{__file__}:Wants", {}, "cannot be called without arguments"),
        (f"{__file__}:Pair", {}, r"takes 2 arguments \(a, b\)"),
        (f"{__file__}:Breaks", {}, "not today"),
        (f"{__file__}:raises", {}, r"raised RuntimeError at .*sources_test.py:\d+: no weights"),
        (f"{__file__}:image", {"max_length": 4}, "for models that take token ids"),
        (f"{__file__}:image", {"last_only": True}, "take token ids of a dynamic length"),
        (f"{__file__}:Text", {"max_length": LENGTH + 1}, f"takes at most {LENGTH}"),
        (f"{__file__}:Text", {"max_length": 0}, "expected at least 1"),
        (f"{__file__}:Text", {"random_weights": True}, "makes its own"),
        (f"{__file__}:Text", {"dtype": "float16"}, "--dtype is for models of transformers"),
        (f"{__file__}:given", {"max_length": 4}, "these are given"),
        (__file__, {}, "expected .*:NAME"),
        ("no/such-model", {}, "nothing is downloaded"),
        (str(Path(__file__).parent), {}, "config.json, there is none"),
    ],
)
def test_what_is_wrong_is_said(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_source(name, **options)


def test_tokens_are_recognized_by_their_dynamic_length() -> None:
    tokens, dim = torch.ones(1, 4, dtype=torch.int64), Dim("t", max=9)
    assert takes_tokens((tokens,), ({1: dim},)) and takes_tokens((tokens,), {"idx": {1: dim}})
    assert not takes_tokens((tokens,), None) and not takes_tokens((tokens,), ({0: dim},))
    assert not takes_tokens((tokens.float(),), ({1: dim},))
    assert not takes_tokens((tokens, tokens), ({1: dim}, None))
    assert not takes_tokens((tokens.bool(),), ({1: dim},)) and not takes_tokens((), ())


def test_further_inputs_of_tokens_are_as_long() -> None:
    tokens, dim = torch.ones(1, 4, dtype=torch.int64), Dim("t", max=9)
    inputs = (tokens, tokens.bool(), tokens[0])
    assert takes_tokens(inputs, ({1: dim}, [None, dim], {0: dim}))
    assert takes_tokens(inputs, {"ids": {1: dim}, "mask": {1: dim}, "positions": (dim,)})
    assert not takes_tokens(inputs, ({1: dim}, {1: dim}, {0: Dim("n", max=9)}))
    assert not takes_tokens(inputs, ({1: dim}, {0: dim}, {0: dim}))
    assert not takes_tokens((tokens, tokens[None]), ({1: dim}, {2: dim}))
    assert not takes_tokens((tokens, 3), ({1: dim}, None))


def run(path: Path, method: str = "forward", inputs: Any = ()) -> list[Any]:
    loaded = Runtime.get().load_program(path.read_bytes()).load_method(method)
    assert loaded is not None
    return list(loaded.execute(list(inputs)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_kept_in_16_bits_may_differ_by_their_rounding(
    tmp_path: Path, dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [f"{__file__}:Text", "-o", str(tmp_path / "text.pte"), "--json", "--parity"]
    assert main([*arguments, "--cache-dtype", dtype]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["incremental"] and said["parity"]["passed"]


def test_command_makes_a_program_that_remembers_and_carries_its_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tokenizer = tmp_path / "text.pte", tmp_path / "tokenizer.json"
    tokenizer.write_bytes(b'{"a": 0, "b": 1}')
    arguments = [f"{__file__}:Text", "-o", str(path), "--tokenizer", str(tokenizer), "--json"]
    assert main([*arguments, "--last-only", "--parity"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        said["incremental"] and said["parity"]["passed"] and said["not_incremental_because"] is None
    )
    assert said["delegates"] == 0 and said["other_calls"] > 0 and said["memory_bytes"] > 0
    assert said["tokens_per_second"] == pytest.approx(said["bandwidth"] / said["read_bytes"])
    # The table of words is looked up, not read.
    assert said["read_bytes"] == path.stat().st_size - 4 * 16 * VOCABULARY
    assert run(path, "get_vocab_size") == [VOCABULARY]
    assert run(path, "get_max_seq_len") == [LENGTH]
    named = deserialize_pte_binary(path.read_bytes()).named_data
    assert named is not None
    stored = named.buffers[named.pte_data["tokenizer"].buffer_index]
    assert bytes(stored) == tokenizer.read_bytes()


def test_command_says_why_a_program_remembers_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.pte"
    arguments = [f"{__file__}:BothWays", "-o", str(path)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "It computes all tokens in every call: " in said and "attend" in said
    assert "sources_test.py:" in said and "tokens/s, at most" in said
    assert main([*arguments, "--incremental"]) == 2
    assert "sources_test.py:" in capsys.readouterr().err
    assert main([*arguments, "--no-incremental"]) == 0
    assert "It computes all" not in capsys.readouterr().out
    assert main([*arguments, "--no-incremental", "--cache-dtype", "float16"]) == 2
    assert "programs that keep keys and values" in capsys.readouterr().err


def test_command_refuses_files_that_are_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing" / "x")
    assert main([f"{__file__}:Text", "-o", missing + ".pte"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    for tokenizer, cause in ((missing, "No such file"), (str(tmp_path), "Is a directory")):
        assert main([f"{__file__}:Text", "--tokenizer", tokenizer]) == 2
        said = capsys.readouterr().err
        assert f"tokenizer: cannot read {tokenizer} ({cause}" in said
        assert "expected a tokenizer's file, such as tokenizer.json" in said
    for text in ("", "{", '{"a": "tokenizer"}'):
        (tmp_path / "broken.json").write_text(text)
        assert main([f"{__file__}:Text", "--tokenizer", str(tmp_path / "broken.json")]) == 2
        said = capsys.readouterr().err
        assert f"--tokenizer {tmp_path}/broken.json: " in said and "[1/" not in said
    for place, cause in ((missing, "there is no folder"), (str(tmp_path), "is a folder")):
        assert main([f"{__file__}:Text", "--etrecord", place]) == 2
        said = capsys.readouterr().err
        assert f"--etrecord {place}: " in said and cause in said and "[1/" not in said


@pytest.mark.parametrize("length", [1, 2, 3])
def test_command_takes_the_shortest_texts(length: int, tmp_path: Path) -> None:
    path = tmp_path / "text.pte"
    arguments = [f"{__file__}:Text", "-o", str(path), "--max-length", str(length)]
    assert main([*arguments, "--parity"]) == 0
    assert run(path, "get_max_seq_len") == [length]


def test_command_refuses_a_length_that_the_tables_do_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [f"{__file__}:TextUnsaid", "-o", str(tmp_path / "text.pte")]
    assert main([*arguments, "--max-length", str(LENGTH + 1)]) == 2
    said = capsys.readouterr().err
    assert f"for a text of {LENGTH + 1} tokens" in said and "sources_test.py:" in said
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("quantize", ["int8", "int8-static", "int8-weights", "int4"])
def test_quantized_programs_run_without_a_backend(quantize: Any) -> None:
    """On the runtime's own kernels; each close to the model that the same recipe makes for XNNPACK,
    whose integers are rounded in the same steps but for those of activations by row."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)), (torch.randn(4, 64),)
    session = export(model, [x], quantize=quantize, backend="portable")
    assert session.get_executorch_program().execution_plan[0].delegates == []
    expected = model(*x).detach()
    # Steps of 1/7 of a weight's range for 4 bits, 1/127 for 8 bits, in two layers.
    bound = {"int4": 0.25, "int8": 0.03, "int8-static": 0.05, "int8-weights": 0.01}[quantize]
    assert float((session.run_method()[0] - expected).norm() / expected.norm()) < bound
