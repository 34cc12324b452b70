"""From an `LlmConfig` to a .pte file.

model, weights ──> type, quantized weights ──> torch.export ──> edge, backends ──> .pte
model.py           source_transformation       extension/llm/export/builder.py
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from executorch.examples.models.llama.lora import is_adapter
from executorch.examples.models.llama.model import Llama2Model
from executorch.examples.models.llama.source_transformation.quantize import (
    quantize,
    quantize_embeddings,
)
from executorch.extension.llm.export.builder import DType, LLMEdgeManager
from executorch.extension.llm.export.config.llm_config import LlmConfig
from executorch.extension.llm.export.partitioner_lib import get_xnnpack_partitioner
from executorch.extension.llm.export.quantizer_lib import (
    get_pt2e_quantization_params,
    get_pt2e_quantizers,
)


def export_llama(export_options: LlmConfig | argparse.Namespace) -> str:
    """Exports and saves; the file's name without folder, without .pte if it was named so.

    ValueError for settings that contradict each other or ask for what is not here."""
    config = export_options
    if isinstance(config, argparse.Namespace):
        config = LlmConfig.from_args(config)
    manager = build(config)
    if config.export.export_only:
        manager.export()
        name = config.export.output_name or f"{manager.modelname}.pt2"
        manager.save_exported_program(name)
        return name
    manager = lower(manager, config)
    name = _output_name(config, manager.modelname)
    manager.save_to_pte(name)
    return str(manager.get_saved_pte_filename())


def export_llm(config: LlmConfig) -> str:
    return export_llama(config)


def build(config: LlmConfig) -> LLMEdgeManager:
    """The model with its weights in their final types."""
    _require_backends(config)
    tokenizer = config.base.tokenizer_path
    if tokenizer is not None and not Path(tokenizer).exists():
        raise FileNotFoundError(f"base.tokenizer_path: there is no file {tokenizer}")
    made = Llama2Model(config)
    args = made.args
    manager = LLMEdgeManager(
        model=made.get_eager_model(),
        modelname=config.base.model_class.value,
        max_seq_len=args.max_seq_len,
        use_kv_cache=args.use_kv_cache,
        example_inputs=made.get_example_inputs(),
        enable_dynamic_shape=args.enable_dynamic_shape,
        generate_full_logits=args.generate_full_logits,
        tokenizer_path=config.base.tokenizer_path,
        verbose=config.debug.verbose,
        metadata=metadata_of(config, args),
        dynamic_shapes=made.get_dynamic_shapes(),
        generate_etrecord=config.debug.generate_etrecord,
    )
    manager.set_output_dir(config.export.output_dir)
    manager.to_dtype(DType[config.model.dtype_override.value])
    transforms: list[Any] = []
    quantization = config.quantization
    if quantization.embedding_quantize:
        settings = quantization.embedding_quantize
        transforms.append(lambda model: quantize_embeddings(model, settings))
    if quantization.qmode:
        qmode = quantization.qmode
        transforms.append(lambda model: quantize(model, qmode, quantization.group_size))
    return manager.source_transform(transforms)


def lower(manager: LLMEdgeManager, config: LlmConfig) -> LLMEdgeManager:
    quantizers = get_pt2e_quantizers(
        get_pt2e_quantization_params(
            config.quantization.pt2e_quantize.value if config.quantization.pt2e_quantize else None,
            config.quantization.qmode,
        ),
        config.export.so_library,
    )
    partitioners = []
    if config.backend.xnnpack.enabled:
        # Products with quantized weights first; the others are as fast in the program itself.
        only_quantized = not config.backend.xnnpack.extended_ops
        bf16 = config.backend.xnnpack.enable_bf16
        partitioners.append(get_xnnpack_partitioner(only_quantized, bf16))
        if not only_quantized:
            partitioners.append(get_xnnpack_partitioner(False, bf16))
    manager.pt2e_quantize(quantizers or None)
    manager.to_edge_transform_and_lower(partitioners or None)
    return manager.to_executorch(external_constants_tag=weight_files(config))


def weight_files(config: LlmConfig) -> Callable[[Any], str | None] | None:
    """The file of each weight outside of the program; None where all stay inside.

    ValueError where a backend would take the weights, which then lie in what it made of them."""
    export = config.export
    names = ("foundation_weights_file", "lora_weights_file")
    given = [f"export.{name}" for name in names if getattr(export, name)]
    if not given:
        return None
    if config.backend.xnnpack.enabled:
        raise ValueError(f"{', '.join(given)}: weights are the backend's with backend.xnnpack")
    adapter = config.base.lora_config
    if export.lora_weights_file and (adapter is None or adapter.merge):
        raise ValueError("export.lora_weights_file needs base.lora_config without merge")

    def file_of(node: Any) -> str | None:
        if is_adapter(node.name):
            return export.lora_weights_file
        return export.foundation_weights_file

    return file_of


def _require_backends(config: LlmConfig) -> None:
    for name in ("coreml", "vulkan", "qnn", "openvino", "tosa", "ethosu", "vgf", "mlx"):
        if getattr(config.backend, name).enabled:
            raise ValueError(f"backend.{name} is not here; there is backend.xnnpack")
    pt2e = config.quantization.pt2e_quantize
    if pt2e is not None and not pt2e.startswith("xnnpack"):
        raise ValueError(f"quantization.pt2e_quantize={pt2e.value} is not here")
    if pt2e is not None and config.quantization.qmode:
        raise ValueError("quantization.pt2e_quantize or quantization.qmode, not both")


def _output_name(config: LlmConfig, modelname: str) -> str:
    if config.export.output_name:
        return config.export.output_name
    parts = [modelname]
    if config.backend.xnnpack.enabled:
        parts.append("xnnpack")
    if config.quantization.qmode:
        parts.append(config.quantization.qmode)
    return "_".join(parts) + ".pte"


def metadata_of(config: LlmConfig, args: Any) -> dict[str, Any]:
    """What the program says about itself, by methods that return a constant."""
    metadata: dict[str, Any] = {
        "get_max_seq_len": args.max_seq_len,
        "get_max_context_len": args.max_context_len,
        "get_n_layers": args.n_layers,
        "get_vocab_size": args.vocab_size,
        "use_kv_cache": args.use_kv_cache,
        "use_sdpa_with_kv_cache": args.use_sdpa_with_kv_cache_op,
        "enable_dynamic_shape": args.enable_dynamic_shape,
    }
    if config.base.metadata:
        try:
            extra = json.loads(config.base.metadata)
        except json.JSONDecodeError as e:
            raise ValueError(f"base.metadata is no JSON: {e}") from e
        if not isinstance(extra, dict):
            raise ValueError("base.metadata: an object with a constant for each name was expected")
        metadata.update(extra)
    return metadata


def build_args_parser() -> argparse.ArgumentParser:
    """The options of the older command; each is a setting of `LlmConfig`."""
    parser = argparse.ArgumentParser(description="Export a language model to a .pte file.")
    add = parser.add_argument
    add("--model", default="llama3", help="as base.model_class")
    add("-c", "--checkpoint", help="file or folder of weights; none: random ones")
    add("-p", "--params", help="params.json or config.json")
    add("-t", "--tokenizer_path")
    add("-m", "--metadata", help="JSON of further constants")
    add("-o", "--output-dir", default=".")
    add("-n", "--output_name")
    add("-s", "--so_library")
    add("-d", "--dtype-override", default="fp32", choices=["fp32", "fp16", "bf16"])
    add("--max_seq_length", type=int, default=128)
    add("--max_context_length", type=int)
    add("-kv", "--use_kv_cache", action="store_true")
    add("--use_sdpa_with_kv_cache", action="store_true")
    add("--quantize_kv_cache", action="store_true")
    add("--disable_dynamic_shape", action="store_true")
    add("-qmode", "--quantization_mode")
    add("-G", "--group_size", type=int)
    add("-E", "--embedding-quantize", help="bits,group: 8,0 or 4,32")
    add("--pt2e_quantize")
    add("-X", "--xnnpack", action="store_true")
    add("--xnnpack-extended-ops", action="store_true")
    add("--xnnpack-enable-bf16", action="store_true")
    add("--generate_full_logits", action="store_true")
    add("--generate_etrecord", action="store_true")
    add("--export_only", action="store_true")
    add("-v", "--verbose", action="store_true")
    for name in ("coreml", "vulkan", "qnn", "openvino", "vgf", "mlx"):
        add(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    return parser
