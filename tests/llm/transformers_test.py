"""Language models of the `transformers` package: exported as they are, a program that remembers the
tokens it has seen writes what `generate` writes, with XNNPACK and without."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.export import ExportedProgram

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import NotCausalError, make_incremental, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.error import ExportError
from executorch.export import export
from executorch.export.__main__ import main
from executorch.export.transformers_models import Logits, source_of
from executorch.runtime import Runtime

VOCABULARY, LENGTH = 96, 48
PROMPT, NEW = [5, 17, 3, 44, 9], 20

_SMALL = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LENGTH,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
_GPT2 = {"vocab_size": VOCABULARY, "n_positions": LENGTH, "n_embd": 32, "n_layer": 2, "n_head": 4}
_MIXTURE = {"num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_LATENT = {
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
# Windows are shorter than the text.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", _GPT2),
    "llama": ("llama", _SMALL),
    "smollm": ("llama", {**_SMALL, "tie_word_embeddings": True, "num_key_value_heads": 1}),
    "qwen2": ("qwen2", _SMALL),
    "qwen3": ("qwen3", _SMALL),
    "gemma": ("gemma", {**_SMALL, "tie_word_embeddings": False}),
    "gemma2": ("gemma2", {**_SMALL, "sliding_window": 8, "tie_word_embeddings": False}),
    "phi": ("phi", {**_SMALL, "num_key_value_heads": 4}),
    "mistral": ("mistral", {**_SMALL, "sliding_window": 8}),
    "mixtral": ("mixtral", {**_SMALL, **_MIXTURE}),
    "qwen3_moe": ("qwen3_moe", {**_SMALL, **_MIXTURE, "num_experts": 4}),
    "gpt_oss": ("gpt_oss", {**_SMALL, **_MIXTURE, "sliding_window": 8}),
    "deepseek_v2": ("deepseek_v2", {**_SMALL, **_MIXTURE, **_LATENT}),
    "deepseek_v3": ("deepseek_v3", {**_SMALL, **_MIXTURE, **_LATENT}),
    "inkling_text": ("inkling_text", {**_SMALL, **_MIXTURE, "sliding_window": 8}),
    "bloom": (
        "bloom",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "n_layer": 2,
            "n_head": 4,
            "tie_word_embeddings": False,
        },
    ),
    # Its table of distances is one longer than the texts: torch.export needs that.
    "mpt": (
        "mpt",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "n_heads": 4,
            "n_layers": 2,
            "max_seq_len": LENGTH + 1,
            "tie_word_embeddings": False,
        },
    ),
    "xglm": (
        "xglm",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "ffn_dim": 48,
            "num_layers": 2,
            "attention_heads": 4,
            "max_position_embeddings": LENGTH,
            "tie_word_embeddings": False,
        },
    ),
}


@cache
def model_of(family: str) -> Any:
    kind, options = FAMILIES[family]
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **options)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():  # an untrained model says nearly the same for every text
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.mul_(1 if "embed" in name else 12)
    return model


@cache
def exported(family: str) -> ExportedProgram:
    # A copy: mixtures of experts are replaced in it, and `generate` shall have its own.
    source = source_of(copy.deepcopy(model_of(family)), LENGTH)
    with torch.no_grad():
        return torch.export.export(
            source.model, source.inputs[0], dynamic_shapes=source.shapes, strict=False
        )


@cache
def written(family: str) -> list[int]:
    """What `generate` adds to the prompt."""
    prompt = torch.tensor([PROMPT])
    found = model_of(family).generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        min_new_tokens=NEW,
        max_new_tokens=NEW,
        eos_token_id=None,
        pad_token_id=0,
    )
    return list(found[0, len(PROMPT) :].tolist())


class Loop:
    """The stateless loop of a user: all tokens so far, in every call."""

    def __init__(self, program: bytes) -> None:
        method = Runtime.get().load_program(program).load_method("forward")
        assert method is not None
        self.method = method

    def logits(self, tokens: list[int]) -> Tensor:
        result: Tensor = self.method.execute([torch.tensor([tokens])])[0]
        return result

    def write(self, tokens: list[int], count: int) -> list[int]:
        text = list(tokens)
        for _ in range(count):
            text.append(int(self.logits(text)[0, -1].argmax()))
        return text[len(tokens) :]


def lowered(program: ExportedProgram, delegate: bool) -> Loop:
    partitioner = [XnnpackPartitioner()] if delegate else None
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    return Loop(edge.to_executorch().buffer)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_writes_what_generate_writes(family: str) -> None:
    program = make_incremental(exported(family))
    expected = written(family)
    assert len(set(expected)) > 3, "a text of one token shows nothing"
    for delegate in (False, True):
        loop = lowered(program, delegate)
        assert loop.write(PROMPT, NEW) == expected, f"XNNPACK: {delegate}"
        # A token is another, the end is cut, another text, then back: what was kept is given up,
        # and computed again.
        text = [*PROMPT, *expected]
        for other in ([*text[:12], 1, *text[13:]], text[:9], [*text[:8], 2], [7, 7, 1]):
            logits = loop.logits(other)
            with torch.no_grad():
                eager = model_of(family)(torch.tensor([other])).logits
            scale = float(eager.abs().max())
            assert logits.shape == eager.shape
            assert float((logits - eager).abs().max()) < 1e-4 * scale
        assert loop.write(PROMPT, 3) == expected[:3]


def test_a_quantized_family_writes_the_same_with_and_without_memory() -> None:
    """Weights and activations in 8 bits: another model, which both programs are."""
    source = source_of(model_of("llama"), LENGTH, last_only=True)

    def loop(incremental: bool) -> Loop:
        session = export(
            source.model,
            source.inputs,
            dynamic_shapes=source.shapes,
            quantize="int8",
            incremental=incremental,
        )
        edge = session.get_edge_program_manager().exported_program()
        left = {each.op_type for each in get_delegation_info(edge.graph_module).left_out}
        assert not left & {"aten_addmm_default", "aten_mm_default", "aten_linear_default"}
        return Loop(session.get_pte_buffer())

    remembering, stateless = loop(True), loop(False)
    text = stateless.write(PROMPT, NEW)
    assert len(set(text)) > 3
    assert remembering.write(PROMPT, NEW) == text


def test_the_command_takes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, path = tmp_path / "model", tmp_path / "model.pte"
    model_of("llama").save_pretrained(folder)
    assert main([str(folder), "-o", str(path), "--last-only", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["incremental"] and said["max_error"] < 1e-4
    program = path.read_bytes()
    assert Loop(program).write(PROMPT, NEW) == written("llama")
    loaded = Runtime.get().load_program(program)

    def said_by(method: str) -> list[Any]:
        found = loaded.load_method(method)
        assert found is not None
        return list(found.execute([]))

    assert said_by("get_vocab_size") == [VOCABULARY]
    assert said_by("get_max_seq_len") == [LENGTH]
    config = model_of("llama").config
    assert said_by("get_bos_id") == [config.bos_token_id]
    assert said_by("get_eos_ids") == [config.eos_token_id]


def test_the_command_takes_a_script_that_makes_a_mixture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, path = tmp_path / "script.py", tmp_path / "model.pte"
    model_of("mixtral").save_pretrained(tmp_path / "model")
    script.write_text(
        "import transformers\n"
        "def make():\n"
        f"    place = {str(tmp_path / 'model')!r}\n"
        "    return transformers.AutoModelForCausalLM.from_pretrained(place)\n"
    )
    assert main([f"{script}:make", "-o", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["incremental"] and said["max_error"] < 1e-4
    assert Loop(path.read_bytes()).write(PROMPT, NEW) == written("mixtral")


class Told(torch.nn.Module):
    """A model as its caller calls it who says where padding is."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        found = self.model(input_ids=tokens, attention_mask=mask, use_cache=False)
        return found.logits  # type: ignore[no-any-return]


def told(family: str, attention: str) -> tuple[Any, ExportedProgram]:
    model = Told(copy.deepcopy(model_of(family)))
    model.model.set_attn_implementation(attention)
    tokens = torch.randint(0, VOCABULARY, (1, 11), generator=torch.Generator().manual_seed(0))
    dims = {1: torch.export.Dim("tokens", max=LENGTH)}
    with torch.no_grad():
        return model, torch.export.export(
            model, (tokens, torch.ones_like(tokens)), dynamic_shapes=(dims, dims), strict=False
        )


@pytest.mark.parametrize(
    ("family", "attention"),
    [("gpt2", "sdpa"), ("llama", "sdpa"), ("llama", "eager"), ("gemma2", "eager"),
     ("bloom", "eager")],
)  # fmt: skip
def test_padding_that_the_caller_tells_is_masked(family: str, attention: str) -> None:
    model, program = told(family, attention)
    method = lowered(make_incremental(program), True).method
    text = [*PROMPT, *written(family)]
    for padding, length in ((0, 9), (0, 10), (0, 11), (3, 11), (3, 12), (2, 12), (3, 20), (0, 20)):
        tokens = torch.tensor([text[:length]])
        mask = (torch.arange(length)[None] >= padding).long()
        with torch.no_grad():
            expected = model(tokens, mask)[:, padding:]
        found = method.execute([tokens, mask])[0][:, padding:]
        assert float((found - expected).abs().max()) < 1e-4 * float(expected.abs().max())


def test_a_mixture_that_sorts_tokens_names_the_way_out() -> None:
    tokens = torch.randint(0, VOCABULARY, (1, 11), generator=torch.Generator().manual_seed(0))
    dims = {1: torch.export.Dim("tokens", max=LENGTH)}
    with torch.no_grad():
        program = torch.export.export(
            Logits(model_of("mixtral")), (tokens,), dynamic_shapes=(dims,), strict=False
        )
    with pytest.raises(NotCausalError, match=r"in MixtralExperts; .*replace_experts\(model\)"):
        make_incremental(program)
    with pytest.raises(ExportError, match=r"grouped_mm(.|\n)*replace_experts\(model\), before"):
        to_edge(program).to_executorch()


def test_a_longest_text_that_torch_cannot_export_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = transformers.AutoConfig.for_model(
        "gpt_neo",
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=8,
        max_position_embeddings=16,
        bos_token_id=1,
        eos_token_id=2,
    )
    config.save_pretrained(tmp_path)
    arguments = [str(tmp_path), "-o", str(tmp_path / "model.pte"), "--random-weights", "--json"]
    assert main([*arguments, "--max-length", "16"]) == 2
    error = capsys.readouterr().err
    assert "a table of 16 entries" in error and "--max-length 15 avoids it" in error
    assert main(arguments) == 0  # not asked for 16
    assert json.loads(capsys.readouterr().out)["incremental"]
    loaded = Runtime.get().load_program((tmp_path / "model.pte").read_bytes())
    longest = loaded.load_method("get_max_seq_len")
    assert longest is not None and longest.execute([]) == [15]


def test_a_loop_over_the_tokens_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = transformers.AutoConfig.for_model(
        "mamba", vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, state_size=4
    )
    config.save_pretrained(tmp_path)
    path = str(tmp_path / "model.pte")
    assert main([str(tmp_path), "-o", path, "--random-weights", "--max-length", "16"]) == 2
    error = capsys.readouterr().err
    line = re.search(r"(\S+/modeling_mamba.py):(\d+) the number of tokens is taken for", error)
    assert line is not None
    source = Path(line[1]).read_text().splitlines()
    assert "for index in range(seq_len)" in source[int(line[2]) - 1]


def test_a_model_without_a_longest_text_takes_one() -> None:
    config = transformers.AutoConfig.for_model(
        "xlnet", vocab_size=VOCABULARY, d_model=16, n_layer=1, n_head=2, d_inner=16
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    assert config.max_position_embeddings == -1
    assert source_of(model, 12).constant_methods["get_max_seq_len"] == 12


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("auto", torch.bfloat16), ("float16", torch.float16), (None, torch.float32)],
)
def test_programs_have_the_type_that_is_asked_for(
    dtype: str | None, expected: torch.dtype, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_of("llama").to(torch.bfloat16).save_pretrained(tmp_path)
    path = tmp_path / "model.pte"
    arguments = [str(tmp_path), "-o", str(path), "--last-only", "--parity", "--json"]
    assert main([*arguments, *(["--dtype", dtype] if dtype else [])]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["incremental"] and said["parity"]["passed"]
    method = Runtime.get().load_program(path.read_bytes()).load_method("forward")
    assert method is not None
    assert method.execute([torch.tensor([[1, 2, 3]])])[0].dtype == expected


def test_what_is_quantized_computes_in_float32(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--dtype", "bfloat16", "--quantize", "int8"]) == 2
    assert "--quantize makes computes in float32" in capsys.readouterr().err


def test_weights_that_are_not_there_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_of("gpt2").config.save_pretrained(tmp_path)
    path = str(tmp_path / "model.pte")
    assert main([str(tmp_path), "-o", path]) == 2
    assert "--random-weights" in capsys.readouterr().err
    assert main([str(tmp_path), "-o", path, "--max-length", str(LENGTH + 1)]) == 2
    assert main([str(tmp_path), "-o", path, "--random-weights", "--max-length", "12"]) == 0
    assert "tokens/s" in capsys.readouterr().out
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    assert main([str(tmp_path), "-o", path, "--random-weights"]) == 2
    assert "no language model" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{")
    assert main([str(tmp_path), "-o", path]) == 2
    assert "config.json cannot be read" in capsys.readouterr().err
