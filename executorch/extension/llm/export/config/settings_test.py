from __future__ import annotations

from argparse import Namespace

import pytest

from executorch.extension.llm.export.config.llm_config import (
    DtypeOverride,
    ExportConfig,
    LlmConfig,
    ModelType,
    QuantizationConfig,
)
from executorch.extension.llm.export.config.settings import load_config


def test_settings_of_the_command_line_have_the_types_of_their_fields() -> None:
    config = load_config(
        None,
        [
            "base.model_class=qwen3_0_6b",
            'base.metadata={"get_bos_id":1, "get_eos_ids":[2]}',
            "model.use_kv_cache=True",
            "model.dtype_override=fp16",
            "++export.max_seq_length=256",
            "export.max_context_length=512",
            "quantization.embedding_quantize=4,32",
            "quantization.group_size=null",
            "model.local_global_attention=[0,16]",
            "backend.xnnpack.enabled=true",
            "export.output_name=5",
        ],
    )
    assert config.base.model_class is ModelType.qwen3_0_6b
    assert config.base.metadata == '{"get_bos_id":1, "get_eos_ids":[2]}'
    assert config.model.use_kv_cache and config.model.dtype_override is DtypeOverride.fp16
    assert (config.export.max_seq_length, config.export.max_context_length) == (256, 512)
    assert config.quantization.embedding_quantize == "4,32"
    assert config.quantization.group_size is None
    assert config.model.local_global_attention == [0, 16]
    assert config.backend.xnnpack.enabled and config.export.output_name == "5"


def test_a_file_is_read_and_overridden(tmp_path) -> None:  # noqa: ANN001
    file = tmp_path / "llm.yaml"
    file.write_text(
        "base:\n  model_class: llama3_2\n  metadata: '{\"get_bos_id\":128000}'\n"
        "quantization:\n  qmode: 8da4w\n  embedding_quantize: 4,32\n"
        "backend:\n  xnnpack:\n    enabled: True\n"
    )
    config = load_config(file, ["quantization.qmode=int8"])
    assert config.base.model_class is ModelType.llama3_2 and config.backend.xnnpack.enabled
    assert config.base.metadata == '{"get_bos_id":128000}'
    assert config.quantization == QuantizationConfig(qmode="int8", embedding_quantize="4,32")


STATIC = (
    "model.use_kv_cache=True",
    "model.static_quantize_kv_cache=True",
    "model.enable_dynamic_shape=False",
)


@pytest.mark.parametrize(
    "settings",
    [
        ["quantization.qmode=torchao:8da4w"],
        ["quantization.qmode=torchao:fpa4w", "model.use_shared_embedding=True"],
        ["quantization.qmode=8da4w-gptq"],
        ["model.use_shared_embedding=True"],
        ["quantization.qmode=''", "quantization.embedding_quantize=''"],
        ["quantization.embedding_quantize=torchao:4,32"],
        ["model.use_attention_sink='4,2044'"],
        ["model.use_attention_sink=''"],
        ["model.use_kv_cache=True", "model.local_global_attention=[0,16]"],
        [*STATIC],
        ["backend.coreml.ios=18"],
    ],
)
def test_what_other_backends_and_models_take_can_be_read(settings: list[str]) -> None:
    load_config(None, settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.use_kv_cach=True"], "did you mean model.use_kv_cache"),
        (["modell.use_kv_cache=True"], "did you mean model"),
        (["model.use_kv_cache"], "is no setting"),
        (["model.use_kv_cache=3"], "expected bool"),
        (["model.dtype_override=fp8"], "expected one of fp32, fp16, bf16"),
        (["export.max_seq_length=0"], "at least 1"),
        (["export.max_seq_length=64", "export.max_context_length=32"], "is less than"),
        (["export.max_seq_length=many"], "expected int"),
        (["quantization.qmode=5da3w"], "expected one of int8"),
        (["quantization.group_size=-1"], "group_size is -1; expected the number"),
        (["quantization.embedding_quantize=3,32"], "bits,group"),
        (["model.quantize_kv_cache=True"], "needs model.use_kv_cache"),
        (["model.local_global_attention=[16]"], "needs model.use_kv_cache"),
        (["model.use_attention_sink='4,2044,3'"], "reads 'sink_size,window_size'"),
        (["model.use_attention_sink=4"], "reads 'sink_size,window_size'"),
        (["model.static_quantize_kv_cache=True"], "needs model.use_kv_cache"),
        ([*STATIC[:2]], "excludes model.enable_dynamic_shape, which is True"),
        ([*STATIC, "model.quantize_kv_cache=True"], "excludes model.quantize_kv_cache"),
        ([*STATIC, "model.local_global_attention=[16]"], "excludes model.local_global_attention"),
        ([*STATIC, "model.use_attention_sink='4,20'"], "excludes model.use_attention_sink"),
        (["model.static_quantize_kv_cache_scale=0"], "is 0.0; a finite number above 0"),
        (["model.static_quantize_kv_cache_scale=.inf"], "is inf; a finite number above 0"),
        (["backend.coreml.ios=14"], "backend.coreml.ios is 14; expected 15, 16, 17 or 18"),
        (["quantization.qmode=torchao:8da4"], "expected one of int8, .*torchao:8da<bits>w"),
        (
            ["quantization.qmode=torchao:8da4w", "backend.xnnpack.enabled=True"],
            "exclude each other",
        ),
        (["quantization.qmode=8da4w", "model.use_shared_embedding=True"], "found '8da4w'"),
        (["base=3"], "is a group of settings"),
        (["base.checkpoint.x=3"], "checkpoint"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_config(None, settings)


def test_options_of_the_older_command_are_settings() -> None:
    config = LlmConfig.from_args(
        Namespace(
            model="llama2",
            use_kv_cache=True,
            quantization_mode="8da4w",
            group_size=64,
            max_seq_length=256,
            disable_dynamic_shape=True,
            xnnpack=True,
        )
    )
    assert config.base.model_class is ModelType.llama2 and config.quantization.group_size == 64
    assert config.export == ExportConfig(max_seq_length=256, max_context_length=256)
    assert not config.model.enable_dynamic_shape and config.backend.xnnpack.enabled
    assert LlmConfig.from_args(Namespace()) == LlmConfig()
