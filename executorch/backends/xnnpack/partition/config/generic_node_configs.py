"""Operators without weights, made from a table."""

from __future__ import annotations

import torch

from executorch.backends.xnnpack.partition.config.xnnpack_config import (
    ConfigPrecisionType,
    XNNPartitionerConfig,
)
from executorch.exir.torch_internals import OpOverload

_FLOAT, _STATIC = [ConfigPrecisionType.FP32], [ConfigPrecisionType.STATIC_QUANT]

# Class -> the operator, and what it is computed in.
_TARGETS: dict[str, tuple[str, list[ConfigPrecisionType]]] = {
    "QuantizedPerTensorConfig": ("quantize_per_tensor.default", _STATIC),
    "DeQuantizedPerTensorConfig": ("dequantize_per_tensor.default", _STATIC),
    **{
        name: (target, _FLOAT + _STATIC)
        for name, target in {
            "AddConfig": "add.Tensor",
            "CatConfig": "cat.default",
            "ClampConfig": "clamp.default",
            "EluConfig": "elu.default",
            "HardtanhConfig": "hardtanh.default",
            "MaxPool2dConfig": "max_pool2d.default",
            "MeanDimConfig": "mean.dim",
            "MulConfig": "mul.Tensor",
            "PermuteConfig": "permute_copy.default",
            "ReLUConfig": "relu.default",
            "SliceCopyConfig": "slice_copy.Tensor",
            "SubConfig": "sub.Tensor",
            "ToDimOrderCopyConfig": "_to_dim_order_copy.default",
            "UnsqueezeCopyConfig": "unsqueeze_copy.default",
            "ViewCopyConfig": "view_copy.default",
        }.items()
    },
    **{
        name: (target, _FLOAT)
        for name, target in {
            "AbsConfig": "abs.default",
            "AvgPoolingConfig": "avg_pool2d.default",
            "BMMConfig": "bmm.default",
            "CeilConfig": "ceil.default",
            "CloneConfig": "clone.default",
            "CloneDimOrderConfig": "_clone_dim_order.default",
            "ConstantPadConfig": "constant_pad_nd.default",
            "CosConfig": "cos.default",
            "DivConfig": "div.Tensor",
            "ExpConfig": "exp.default",
            "FloorConfig": "floor.default",
            "GeluConfig": "gelu.default",
            "HardswishConfig": "hardswish.default",
            "LeakyReLUConfig": "leaky_relu.default",
            "LogConfig": "log.default",
            "MaximumConfig": "maximum.default",
            "MinimumConfig": "minimum.default",
            "NegConfig": "neg.default",
            "PowConfig": "pow.Tensor_Scalar",
            "ReciprocalSquareRootConfig": "rsqrt.default",
            "SigmoidConfig": "sigmoid.default",
            "SinConfig": "sin.default",
            "SoftmaxConfig": "_softmax.default",
            "SquareRootConfig": "sqrt.default",
            "TanhConfig": "tanh.default",
            "UpsampleBilinear2dConfig": "upsample_bilinear2d.vec",
        }.items()
    },
}
# The ATen operators that decompose unless they are kept.
_WHOLE = ("elu.default", "max_pool2d.default", "upsample_bilinear2d.vec", "hardswish.default")


class GenericNodePartitionerConfig(XNNPartitionerConfig):
    """An operator that is one node of the payload."""

    precisions: list[ConfigPrecisionType]

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        return list(self.precisions)

    def get_original_aten(self) -> OpOverload | None:
        if self.target_name not in _WHOLE:
            return None
        packet, overload = self.target_name.split(".")
        kept: OpOverload = getattr(getattr(torch.ops.aten, packet), overload)
        return kept


for _name, (_target, _precisions) in _TARGETS.items():
    globals()[_name] = type(
        _name,
        (GenericNodePartitionerConfig,),
        {"target_name": _target, "precisions": _precisions, "__module__": __name__},
    )
