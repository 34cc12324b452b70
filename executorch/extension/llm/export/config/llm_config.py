"""What an exported language model shall be: `LlmConfig`, one group of settings for each step.

    LlmConfig(
        base=BaseConfig(model_class=ModelType.llama3_2, checkpoint="...", params="params.json"),
        model=ModelConfig(use_kv_cache=True, use_sdpa_with_kv_cache=True),
        export=ExportConfig(max_seq_length=512, max_context_length=512, output_name="llama.pte"),
        quantization=QuantizationConfig(qmode="8da4w", group_size=32),
        backend=BackendConfig(xnnpack=XNNPackConfig(enabled=True)),
    )

Values are checked where they are given. Settings of backends that are not here are accepted; to
enable such a backend is an error of the export.
"""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass, field

from executorch._text_enum import StrEnum


class ModelType(StrEnum):
    stories110m = "stories110m"
    llama2 = "llama2"
    llama3 = "llama3"
    llama3_1 = "llama3_1"
    llama3_2 = "llama3_2"
    llama3_2_vision = "llama3_2_vision"
    static_llama = "static_llama"
    qwen2_5_0_5b = "qwen2_5_0_5b"
    qwen2_5_1_5b = "qwen2_5_1_5b"
    qwen2_5_coder_32b = "qwen2_5_coder_32b"
    qwen3_0_6b = "qwen3_0_6b"
    qwen3_1_7b = "qwen3_1_7b"
    qwen3_4b = "qwen3_4b"
    qwen3_5_0_8b = "qwen3_5_0_8b"
    qwen3_5_2b = "qwen3_5_2b"
    qwen3_5_4b = "qwen3_5_4b"
    phi_4_mini = "phi_4_mini"
    smollm2 = "smollm2"
    lfm2_350m = "lfm2_350m"
    lfm2_700m = "lfm2_700m"
    lfm2_1_2b = "lfm2_1_2b"
    lfm2_5_350m = "lfm2_5_350m"
    lfm2_5_1_2b = "lfm2_5_1_2b"


class PreqMode(StrEnum):
    preq_8da4w = "8da4w"
    preq_8da4w_out_8da8w = "8da4w_output_8da8w"


class DtypeOverride(StrEnum):
    fp32 = "fp32"
    fp16 = "fp16"
    bf16 = "bf16"


class Pt2eQuantize(StrEnum):
    xnnpack_dynamic = "xnnpack_dynamic"
    xnnpack_dynamic_qc4 = "xnnpack_dynamic_qc4"
    openvino_4wo = "openvino_4wo"
    openvino_8wo = "openvino_8wo"
    qnn_8a8w = "qnn_8a8w"
    qnn_16a16w = "qnn_16a16w"
    qnn_16a4w = "qnn_16a4w"
    coreml_c4w = "coreml_c4w"
    coreml_8a_c8w = "coreml_8a_c8w"
    coreml_8a_c4w = "coreml_8a_c4w"
    coreml_baseline_8a_c8w = "coreml_baseline_8a_c8w"
    coreml_baseline_8a_c4w = "coreml_baseline_8a_c4w"
    vulkan_8w = "vulkan_8w"
    tosa_8a8w = "tosa_8a8w"
    ethosu_8a8w = "ethosu_8a8w"
    ethosu_16a8w = "ethosu_16a8w"
    vgf_8a8w = "vgf_8a8w"
    vgf_16a8w = "vgf_16a8w"


class SpinQuant(StrEnum):
    cuda = "cuda"
    native = "native"


class QuantizeScope(StrEnum):
    full = "full"
    linear = "linear"


class VgfQuantizeScope(StrEnum):
    full = "full"
    linear = "linear"


class CoreMLQuantize(StrEnum):
    b4w = "b4w"
    c4w = "c4w"


class CoreMLComputeUnit(StrEnum):
    cpu_only = "cpu_only"
    cpu_and_gpu = "cpu_and_gpu"
    cpu_and_ne = "cpu_and_ne"
    all = "all"


@dataclass
class LoraConfig:
    """An adapter of low rank for linear layers.

    adapter_checkpoint  .safetensors or .pt, under PEFT's or Meta's names
    adapter_config      PEFT's adapter_config.json; without it lora_rank, lora_alpha and
                        target_modules (q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj,
                        down_proj) say the same
    merge               into the weights; else the adapter is computed beside them, and its
                        parameters can go into a file of their own (export.lora_weights_file)
    """

    adapter_checkpoint: str
    adapter_config: str | None = None
    lora_rank: int = 0
    lora_alpha: int = 0
    target_modules: list[str] = field(default_factory=list)
    adapter_quant: str | None = None
    merge: bool = False


@dataclass
class BaseConfig:
    """Which model.

    checkpoint  a .pth, .pt or .safetensors file, or a folder as Hugging Face's models lie in;
                without one the weights are random
    params      the model's sizes as JSON: Meta's params.json or Hugging Face's config.json
    metadata    JSON of further methods that return a constant, such as
                {"get_bos_id": 1, "get_eos_ids": [2]}
    """

    model_class: ModelType = ModelType.llama3
    params: str | None = None
    checkpoint: str | None = None
    lora_config: LoraConfig | None = None
    tokenizer_path: str | None = None
    metadata: str | None = None
    use_lora: int = 0
    preq_mode: PreqMode | None = None
    preq_group_size: int = 32
    preq_embedding_quantize: str = "8,0"


@dataclass
class ModelConfig:
    """How the model computes. `use_kv_cache`: keys and values of earlier tokens are kept, and a
    second input says at which position the given tokens stand."""

    dtype_override: DtypeOverride = DtypeOverride.fp32
    enable_dynamic_shape: bool = True
    use_shared_embedding: bool = False
    use_sdpa_with_kv_cache: bool = False
    expand_rope_table: bool = False
    use_attention_sink: str | None = None
    output_prune_map: str | None = None
    input_prune_map: str | None = None
    use_kv_cache: bool = False
    quantize_kv_cache: bool = False
    static_quantize_kv_cache: bool = False
    static_quantize_kv_cache_scale: float = 1 / 127
    local_global_attention: list[int] | None = None
    use_moe_quantized_op: bool = False

    def __post_init__(self) -> None:
        for name in ("quantize_kv_cache", "static_quantize_kv_cache", "local_global_attention"):
            if getattr(self, name) and not self.use_kv_cache:
                raise ValueError(f"model.{name} needs model.use_kv_cache")
        if self.use_attention_sink:
            parts = self.use_attention_sink.split(",")
            if len(parts) != 2 or not all(p.strip().isdigit() for p in parts):
                raise ValueError(
                    "model.use_attention_sink reads 'sink_size,window_size', not "
                    f"{self.use_attention_sink!r}"
                )
        if self.static_quantize_kv_cache:
            self._check_static_quantization()
        scale = self.static_quantize_kv_cache_scale
        if not math.isfinite(scale) or scale <= 0:
            raise ValueError(
                f"model.static_quantize_kv_cache_scale is {scale}; a finite number above 0 was "
                "expected"
            )

    def _check_static_quantization(self) -> None:
        others = (
            "quantize_kv_cache",
            "enable_dynamic_shape",
            "local_global_attention",
            "use_attention_sink",
        )
        for name in others:
            if getattr(self, name):
                raise ValueError(
                    f"model.static_quantize_kv_cache excludes model.{name}, which is "
                    f"{getattr(self, name)!r}"
                )


@dataclass
class ExportConfig:
    """`max_seq_length`: tokens in one call; `max_context_length`: tokens in all."""

    max_seq_length: int = 128
    max_context_length: int = 128
    output_dir: str = "."
    output_name: str | None = None
    so_library: str | None = None
    export_only: bool = False
    foundation_weights_file: str | None = None
    lora_weights_file: str | None = None

    def __post_init__(self) -> None:
        if self.max_seq_length < 1:
            raise ValueError(f"export.max_seq_length is {self.max_seq_length}, not at least 1")
        if self.max_context_length < self.max_seq_length:
            raise ValueError(
                f"export.max_context_length, {self.max_context_length}, is less than "
                f"export.max_seq_length, {self.max_seq_length}"
            )


@dataclass
class DebugConfig:
    profile_memory: bool = False
    profile_path: str | None = None
    generate_etrecord: bool = False
    generate_full_logits: bool = False
    verbose: bool = False


@dataclass
class MethodConfig:
    method_name: str
    lora_config: LoraConfig | None = None
    export_seq_len: int | None = None


@dataclass
class MultimethodConfig:
    methods: list[MethodConfig] = field(default_factory=list)
    share_mutable_buffers: bool = False

    @property
    def enabled(self) -> bool:
        return bool(self.methods)


QMODES = ("int8", "8da4w", "8da8w", "4w")
# Taken, so that a configuration can be read; to export with one of them is an error.
_UNSUPPORTED_QMODES = ("8da4w-gptq", "torchao:8da<bits>w", "torchao:fpa<bits>w")


@dataclass
class QuantizationConfig:
    """How numbers are stored.

    qmode               int8: weights of 8 bits per channel; 8da4w, 8da8w: inputs of layers in 8
                        bits, weights in 4 or 8; 4w: weights of 4 bits
    group_size          weights that share a scale, for 8da4w and 4w
    embedding_quantize  "bits,group": 8 or 4 bits; group 0: one scale for a row
    """

    qmode: str | None = None
    embedding_quantize: str | None = None
    pt2e_quantize: Pt2eQuantize | None = None
    group_size: int | None = None
    use_spin_quant: SpinQuant | None = None
    use_qat: bool = False
    quantize_scope: QuantizeScope = QuantizeScope.full
    calibration_tasks: list[str] | None = None
    calibration_limit: int | None = None
    calibration_seq_length: int | None = None
    calibration_data: str = "Once upon a time"
    use_hqq: bool = True

    def __post_init__(self) -> None:
        known = self.qmode in ("8da4w-gptq", *QMODES) or self.has_low_bit_kernels
        if self.qmode and not known:
            raise ValueError(
                f"quantization.qmode is {self.qmode!r}; expected one of "
                f"{', '.join((*QMODES, *_UNSUPPORTED_QMODES))}"
            )
        if self.group_size is not None and self.group_size < 0:
            raise ValueError(
                f"quantization.group_size is {self.group_size}; expected the number of weights "
                "that share a scale"
            )
        if self.embedding_quantize:
            given = self.embedding_quantize.replace(" ", "")
            found = re.fullmatch(r"(2|4|8|torchao:[1-8]),\d+", given)
            if found is None:
                raise ValueError(
                    "quantization.embedding_quantize reads 'bits,group', such as '8,0' or '4,32', "
                    f"not {self.embedding_quantize!r}"
                )

    @property
    def has_low_bit_kernels(self) -> bool:
        return re.fullmatch(r"torchao:(8da|fpa)\d+w", self.qmode or "") is not None


@dataclass
class XNNPackConfig:
    enabled: bool = False
    extended_ops: bool = False
    enable_bf16: bool = False


@dataclass
class CoreMLConfig:
    enabled: bool = False
    enable_state: bool = False
    preserve_sdpa: bool = False
    quantize: CoreMLQuantize | None = None
    ios: int = 15
    compute_units: CoreMLComputeUnit = CoreMLComputeUnit.cpu_only

    def __post_init__(self) -> None:
        if self.ios not in (15, 16, 17, 18):
            raise ValueError(f"backend.coreml.ios is {self.ios!r}; expected 15, 16, 17 or 18")


@dataclass
class VulkanConfig:
    enabled: bool = False
    force_fp16: bool = False


@dataclass
class QNNConfig:
    enabled: bool = False
    use_sha: bool = False
    soc_model: str = "SM8650"
    use_qnn_sha: bool = False
    optimized_rotation_path: str | None = None
    num_sharding: int = 0


@dataclass
class OpenvinoConfig:
    enabled: bool = False
    device: str = "CPU"
    nncf_compression_group_size: int = 32
    openvino_awq: bool = False
    openvino_scale_estimation: bool = False


@dataclass
class TorchAOKernelsConfig:
    use_torchao_kernels_linear: bool = False
    use_torchao_kernels_tied_embedding: bool = False


@dataclass
class TosaConfig:
    enabled: bool = False
    version: str = "TOSA-1.0+INT"


@dataclass
class EthosUConfig:
    enabled: bool = False
    target: str = "ethos-u85-128"
    memory_mode: str = "default"
    system_config: str = "default"
    extra_flags: list[str] = field(default_factory=list)


@dataclass
class VgfConfig:
    enabled: bool = False
    compile_spec: str | None = "TOSA-1.0+INT"
    compiler_flags: list[str] = field(default_factory=list)
    quantize_scope: VgfQuantizeScope = VgfQuantizeScope.full


@dataclass
class MLXConfig:
    enabled: bool = False


@dataclass
class BackendConfig:
    xnnpack: XNNPackConfig = field(default_factory=XNNPackConfig)
    coreml: CoreMLConfig = field(default_factory=CoreMLConfig)
    vulkan: VulkanConfig = field(default_factory=VulkanConfig)
    qnn: QNNConfig = field(default_factory=QNNConfig)
    openvino: OpenvinoConfig = field(default_factory=OpenvinoConfig)
    torchao: TorchAOKernelsConfig = field(default_factory=TorchAOKernelsConfig)
    tosa: TosaConfig = field(default_factory=TosaConfig)
    ethosu: EthosUConfig = field(default_factory=EthosUConfig)
    vgf: VgfConfig = field(default_factory=VgfConfig)
    mlx: MLXConfig = field(default_factory=MLXConfig)


@dataclass
class LlmConfig:
    base: BaseConfig = field(default_factory=BaseConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    debug: DebugConfig = field(default_factory=DebugConfig)
    multimethod: MultimethodConfig = field(default_factory=MultimethodConfig)
    quantization: QuantizationConfig = field(default_factory=QuantizationConfig)
    backend: BackendConfig = field(default_factory=BackendConfig)

    def __post_init__(self) -> None:
        quantization = self.quantization
        if quantization.has_low_bit_kernels and self.backend.xnnpack.enabled:
            raise ValueError(
                f"quantization.qmode={quantization.qmode} and backend.xnnpack.enabled exclude each "
                "other: both compute the linear layers"
            )
        only_other_kernels = quantization.qmode and not quantization.has_low_bit_kernels
        if self.model.use_shared_embedding and only_other_kernels:
            raise ValueError(
                "model.use_shared_embedding needs a quantization.qmode such as torchao:8da4w, "
                f"found {quantization.qmode!r}"
            )

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> LlmConfig:
        """From the options of the older command, `examples.models.llama.export_llama`."""
        from executorch.extension.llm.export.config.settings import config_from

        found: dict[str, object] = {}
        for option, setting in _SETTING_OF_OPTION.items():
            value = getattr(args, option, None)
            if value is not None:
                found[setting] = value
        if getattr(args, "disable_dynamic_shape", None):
            found["model.enable_dynamic_shape"] = False
        context = found.get("export.max_context_length")
        found.setdefault("export.max_context_length", found.get("export.max_seq_length", 128))
        if context is None and "export.max_seq_length" not in found:
            del found["export.max_context_length"]
        return config_from(found)


# Settings that have the names of options, by group.
_SAME_NAMES = {
    "base": (
        "params checkpoint tokenizer_path metadata use_lora preq_mode preq_group_size "
        "preq_embedding_quantize"
    ),
    "model": (
        "dtype_override use_shared_embedding use_sdpa_with_kv_cache expand_rope_table "
        "use_attention_sink output_prune_map input_prune_map use_kv_cache "
        "quantize_kv_cache local_global_attention"
    ),
    "export": "max_seq_length max_context_length output_dir output_name so_library export_only",
    "debug": "profile_memory profile_path generate_etrecord generate_full_logits verbose",
    "quantization": (
        "embedding_quantize pt2e_quantize group_size use_spin_quant use_qat "
        "calibration_tasks calibration_limit calibration_seq_length calibration_data"
    ),
    "backend.torchao": "use_torchao_kernels_linear use_torchao_kernels_tied_embedding",
}
_SETTING_OF_OPTION = {
    **{name: f"{group}.{name}" for group, names in _SAME_NAMES.items() for name in names.split()},
    "model": "base.model_class",
    "quantization_mode": "quantization.qmode",
    "xnnpack": "backend.xnnpack.enabled",
    "xnnpack_extended_ops": "backend.xnnpack.extended_ops",
    "xnnpack_enable_bf16": "backend.xnnpack.enable_bf16",
    "coreml": "backend.coreml.enabled",
    "vulkan": "backend.vulkan.enabled",
    "qnn": "backend.qnn.enabled",
    "openvino": "backend.openvino.enabled",
    "vgf": "backend.vgf.enabled",
    "mlx": "backend.mlx.enabled",
}
