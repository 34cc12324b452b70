"""Small models of every kind: the programs generate what the models do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch.examples.models.llama.export_llama_lib import build, export_llama
from executorch.examples.models.llama.model import Llama2Model, load_checkpoint
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.extension.llm.export.config.settings import load_config
from executorch.runtime import Runtime

PARAMS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 96,
    "multiple_of": 32,
}
CACHED = ["model.use_kv_cache=True"]
FUSED = [*CACHED, "model.use_sdpa_with_kv_cache=True"]
XNNPACK = ["backend.xnnpack.enabled=True"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "params.json").write_text(json.dumps(PARAMS))
    return tmp_path


def configure(folder: Path, settings: list[str]) -> Any:
    return load_config(
        None,
        [
            f"base.params={folder / 'params.json'}",
            f"export.output_dir={folder}",
            "export.output_name=model.pte",
            "export.max_seq_length=16",
            "export.max_context_length=40",
            *settings,
        ],
    )


def export(folder: Path, settings: list[str]) -> tuple[Any, Any]:
    """The loaded program, and the model that was exported."""
    config = configure(folder, settings)
    program = Runtime.get().load_program(export_llama(config))
    return program, build(config).model.eval()


def bound(expected: torch.Tensor, relative: float) -> float:
    return relative * float(expected.float().abs().max())


def generate(
    program: Any,
    model: Any,
    relative: float | None,
    lengths: tuple[int, ...],
    unquantized: Any = None,
) -> None:
    """Some tokens at once, then one by one, in one context; equal at every step. `relative` None:
    the distance is a fifth at most of what quantization changes."""
    torch.manual_seed(0)
    forward = program.load_method("forward")
    start = 0
    with torch.no_grad():
        for n in lengths:
            tokens = torch.randint(0, 96, (1, n))
            given = (tokens, torch.tensor([start]))
            (found,) = forward.execute(given)
            expected = model(tokens, {"input_pos": given[1]})
            assert found.shape == expected.shape and found.dtype == expected.dtype
            if relative is None:
                change = (expected - unquantized(tokens, {"input_pos": given[1]})).norm()
                assert (found - expected).norm() < 0.2 * change
            else:
                torch.testing.assert_close(found, expected, atol=bound(expected, relative), rtol=0)
            start += n


LENGTHS = (5, 1, 1, 7, 1, 16, 1)

# The greatest difference as a part of the greatest logit, by rounding of the type. XNNPACK's scales
# of inputs that are quantized when they run differ from eager's in the last bit, so that some
# inputs fall on the other side of a step: None.
CASES: dict[str, tuple[list[str], float | None]] = {
    "fp32": (CACHED, 2e-6),
    "fp32_op": (FUSED, 2e-6),
    "fp16": ([*CACHED, "model.dtype_override=fp16"], 1e-2),
    "fp16_op": ([*FUSED, "model.dtype_override=fp16"], 1e-2),
    "bf16_op": ([*FUSED, "model.dtype_override=bf16"], 6e-2),
    "int8": ([*CACHED, "quantization.qmode=int8"], 1e-5),
    "int8_op": ([*FUSED, "quantization.qmode=int8"], 1e-5),
    "4w": ([*CACHED, "quantization.qmode=4w", "quantization.group_size=32"], 1e-5),
    "8da4w": ([*CACHED, "quantization.qmode=8da4w", "quantization.group_size=32"], 1e-5),
    "8da4w_op": ([*FUSED, "quantization.qmode=8da4w", "quantization.group_size=32"], 1e-5),
    "8da8w_op": ([*FUSED, "quantization.qmode=8da8w"], 1e-5),
    "embedding8": ([*FUSED, "quantization.embedding_quantize=8,0"], 2e-6),
    "embedding4": ([*FUSED, "quantization.embedding_quantize=4,32"], 2e-6),
    "int8_cache": ([*FUSED, "model.quantize_kv_cache=True"], 1e-5),
    "full_logits": ([*FUSED, "debug.generate_full_logits=True"], 2e-6),
    "xnnpack": ([*FUSED, *XNNPACK], 2e-6),
    "xnnpack_all": ([*CACHED, *XNNPACK, "backend.xnnpack.extended_ops=True"], 1e-5),
    "xnnpack_8da4w": (
        [*FUSED, *XNNPACK, "quantization.qmode=8da4w", "quantization.group_size=32"],
        None,
    ),
    "xnnpack_8da4w_all": (
        [
            *FUSED,
            *XNNPACK,
            "backend.xnnpack.extended_ops=True",
            "quantization.qmode=8da4w",
            "quantization.group_size=32",
            "quantization.embedding_quantize=4,32",
        ],
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_programs_generate_what_models_do(case: str, folder: Path) -> None:
    settings, relative = CASES[case]
    program, model = export(folder, settings)
    plain = None
    if relative is None:
        kept = [s for s in settings if not s.startswith("quantization.")]
        plain = build(configure(folder, kept)).model.eval()
    generate(program, model, relative, LENGTHS, plain)


def test_one_token_at_a_time_without_dynamic_shapes(folder: Path) -> None:
    for settings in (CACHED, FUSED):
        program, model = export(folder, [*settings, "model.enable_dynamic_shape=False"])
        generate(program, model, 2e-6, (1, 1, 1, 1))


def test_without_caches_every_call_has_all_tokens(folder: Path) -> None:
    program, model = export(folder, [])
    forward = program.load_method("forward")
    for n in (1, 4, 16):
        tokens = torch.randint(0, 96, (1, n))
        torch.testing.assert_close(
            forward.execute((tokens,))[0], model(tokens).detach(), atol=1e-5, rtol=0
        )


def test_caches_and_full_recomputation_agree(folder: Path) -> None:
    cached = build(configure(folder, FUSED)).model
    whole = build(configure(folder, ["debug.generate_full_logits=True"])).model
    tokens = torch.randint(0, 96, (1, 12))
    with torch.no_grad():
        expected = whole(tokens)
        for start, n in ((0, 5), (5, 1), (6, 1), (7, 5)):
            found = cached(tokens[:, start : start + n], {"input_pos": torch.tensor([start])})
            torch.testing.assert_close(found, expected[:, start + n - 1], atol=1e-5, rtol=0)


def test_positions_beyond_the_context_are_errors(folder: Path) -> None:
    for settings in (CACHED, FUSED):
        program, _ = export(folder, settings)
        forward = program.load_method("forward")
        # Of indices, which the caches without the operator are written by, -1 is the last.
        for start in (39, 40, 2**62, -(2**63), *([-1] if settings is FUSED else [])):
            with pytest.raises(RuntimeError):
                forward.execute((torch.zeros(1, 2, dtype=torch.int64), torch.tensor([start])))


def test_programs_say_what_they_are(folder: Path) -> None:
    metadata = 'base.metadata={"get_bos_id": 1, "get_eos_ids": [2, 3]}'
    program, _ = export(folder, [*FUSED, metadata])
    expected = {
        "get_bos_id": [1],
        "get_eos_ids": [2, 3],
        "get_max_seq_len": [16],
        "get_max_context_len": [40],
        "get_n_layers": [2],
        "get_vocab_size": [96],
        "use_kv_cache": [True],
        "use_sdpa_with_kv_cache": [True],
        "enable_dynamic_shape": [True],
    }
    for name, value in expected.items():
        assert list(program.load_method(name).execute(())) == value, name


def test_checkpoints_are_loaded_under_metas_names(folder: Path) -> None:
    original = Llama2Model(configure(folder, CACHED)).get_eager_model()
    with torch.no_grad():
        for parameter in original.parameters():
            parameter.normal_()
    state = original.state_dict()
    torch.save({**state, "rope.freqs": torch.zeros(8)}, folder / "model.pth")
    checkpoint = f"base.checkpoint={folder / 'model.pth'}"
    loaded = Llama2Model(configure(folder, [*CACHED, checkpoint])).get_eager_model()
    for name, value in loaded.state_dict().items():
        assert torch.equal(value, state[name]), name

    del state["norm.weight"]
    torch.save({**state, "x": torch.zeros(1)}, folder / "model.pth")
    with pytest.raises(
        ValueError, match=r"1 parameters are missing \(norm.weight\), 1 are unknown"
    ):
        Llama2Model(configure(folder, [*CACHED, checkpoint]))
    (folder / "model.pth").write_bytes(b"nonsense")
    with pytest.raises(Exception, match="."):
        load_checkpoint(folder / "model.pth")


FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {"attention_bias": True},
    "Mistral": {"sliding_window": 64},
    "Qwen2": {},
    "Qwen3": {"head_dim": 32},
    "Phi3": {"pad_token_id": 0, "partial_rotary_factor": 0.75},
    "SmolLM3": {"pad_token_id": 0},
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_checkpoints_of_transformers_give_its_logits(family: str, tied: bool, folder: Path) -> None:
    import transformers

    config = getattr(transformers, f"{family}Config")(
        vocab_size=96,
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=tied,
        **FAMILIES[family],
    )
    torch.manual_seed(1)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.1)
    model.save_pretrained(folder / "hf")
    tokens = torch.randint(0, 96, (1, 9))
    settings = [f"base.checkpoint={folder / 'hf'}", f"base.params={folder / 'hf/config.json'}"]
    program, ours = export(folder, [*FUSED, *settings, "debug.generate_full_logits=True"])
    with torch.no_grad():
        expected = model(tokens).logits
        found = ours(tokens, {"input_pos": torch.tensor([0])})
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        (ran,) = program.load_method("forward").execute((tokens, torch.tensor([0])))
        torch.testing.assert_close(ran, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "mistral", "sliding_window": 63}, "sliding_window is 63.* is 64"),
        ({"model_type": "phi3", "sliding_window": 63}, "sliding_window is 63"),
        (
            {"model_type": "qwen2", "sliding_window": 8, "layer_types": ["sliding_attention"]},
            "sliding_window is 8",
        ),
        (
            {"model_type": "smollm3", "no_rope_layers": [1, 0], "no_rope_layer_interval": 4},
            r"no_rope_layers is \[1, 0\].* 4: \[1, 1\]",
        ),
    ],
)
def test_layers_unlike_the_others_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelArgs.from_params({"hidden_size": 64, **config}, max_context_len=64)


def test_windows_that_no_layer_uses_are_skipped() -> None:
    for config in (
        {"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": False},
        {"model_type": "qwen3", "sliding_window": 8},
        {"model_type": "phi3", "sliding_window": 8, "layer_types": ["full_attention"]},
        {"model_type": "mistral", "sliding_window": None},
    ):
        ModelArgs.from_params({"hidden_size": 64, **config}, max_context_len=64)


def test_hugging_faces_weights_fit_metas_order_of_pairs(folder: Path) -> None:
    """The same model, with params that say nothing of Hugging Face's rotation."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=96,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-5,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder / "hf")
    ours = Llama2Model(
        configure(folder, [f"base.checkpoint={folder / 'hf'}", "debug.generate_full_logits=True"])
    ).get_eager_model()
    assert not ours.params.use_hf_rope
    tokens = torch.randint(0, 96, (1, 7))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), model(tokens).logits, atol=1e-5, rtol=1e-5)


def test_llama_3_stretches_low_frequencies_as_transformers_does(folder: Path) -> None:
    import transformers

    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    config = transformers.LlamaConfig(
        vocab_size=96,
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=2,
        num_attention_heads=4,
        rope_parameters={"rope_theta": 10000.0, **scaling},
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder / "hf")
    ours = Llama2Model(
        configure(
            folder,
            [
                f"base.checkpoint={folder / 'hf'}",
                f"base.params={folder / 'hf/config.json'}",
                "debug.generate_full_logits=True",
            ],
        )
    ).get_eager_model()
    assert ours.params.use_scaled_rope
    tokens = torch.randint(0, 96, (1, 40))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), model(tokens).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["backend.qnn.enabled=True"], "backend.qnn is not here"),
        (["base.model_class=lfm2_350m"], "is not supported; there are"),
        (["base.use_lora=8"], "base.use_lora"),
        (["quantization.qmode=8da4w", "quantization.group_size=24"], "no multiple of the group"),
        (["quantization.qmode=torchao:8da4w"], "qmode is 'torchao:8da4w'; expected one of int8"),
        (["quantization.qmode=8da4w-gptq"], "qmode is '8da4w-gptq'; expected one of int8"),
        (["quantization.embedding_quantize=torchao:4,32"], "whose kernels are not here"),
        (["base.metadata=nonsense"], "no JSON"),
        (["base.params=/dev/null"], "null"),
    ],
)
def test_what_is_not_here_is_refused(settings: list[str], message: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=message):
        export_llama(configure(folder, settings))


@pytest.mark.parametrize(
    "variant",
    [
        {"moe": True},
        {"attention_type": "static"},
        {"attention_kwargs": {"split_mha": False}},
        {"layer_types": ["conv", "full_attention"]},
        {"num_kv_shared_layers": 1},
        {"scale_query_by": 0.5},
        {"use_residual_gate": True},
        {"r": 8},
        {"apply_output": False},
        {"input_prune_map": {0: 3}},
    ],
)
def test_variants_that_are_not_here_are_named(variant: dict[str, Any]) -> None:
    (name,) = variant
    for make in (ModelArgs.from_params, lambda params: ModelArgs(**params)):
        with pytest.raises(ValueError, match=f"params: {name} is .* not supported; expected"):
            make({**PARAMS, **variant})


def test_variants_by_default_change_nothing() -> None:
    args = ModelArgs(64, 2, 4, moe=False, layer_types=[], mlp_type=None)
    assert (args.dim, args.n_layers, args.n_heads) == (64, 2, 4)
    assert (args.attention_type, args.num_kv_shared_layers, args.r) == ("mha", 0, None)
    assert not args.use_residual_gate and not args.moe and args.attention_kwargs == {}
    ModelArgs.from_params({**PARAMS, "moe": None, "use_q_gate": False, "attention_type": "mha"})


def test_the_commands_export(folder: Path) -> None:
    yaml = folder / "llm.yaml"
    yaml.write_text(f"base:\n  params: {folder / 'params.json'}\nmodel:\n  use_kv_cache: True\n")
    names = [f"export.output_dir={folder}", "export.output_name=a.pte"]
    commands = [
        ["executorch.extension.llm.export.export_llm", "--config", str(yaml), *names],
        [
            *("executorch.examples.models.llama.export_llama", "-kv", "--use_sdpa_with_kv_cache"),
            *("-p", str(folder / "params.json"), "-o", str(folder), "-n", "b.pte"),
        ],
    ]
    for command in commands:
        subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    for name in ("a.pte", "b.pte"):
        program = Runtime.get().load_program(str(folder / name))
        assert "forward" in program.method_names
    wrong = [sys.executable, "-m", "executorch.extension.llm.export.export_llm", "model.x=1"]
    failed = subprocess.run(wrong, capture_output=True, text=True)
    assert failed.returncode == 1 and "there is no setting model.x" in failed.stderr
    assert "Traceback" not in failed.stderr
