"""Models that exporters lower to XNNPACK, one for each thing its payload can hold.

    python xnnpack_cases.py export FOLDER [CASE...]
    python xnnpack_cases.py run    FOLDER [CASE...]

Run by the interpreter of either environment. `export` writes CASE.pte and CASE.pt: a list of
(inputs, what eager PyTorch says, what this runtime says), one entry per input set. `run` runs what
the other exported and writes CASE.out: the results of each input set. Both print each case before
they begin, so that a crash is charged to it.
"""

from __future__ import annotations

import copy
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

if __package__:
    from tests.interop import xnnpack_models as m
else:  # a script of another environment, beside which the file lies
    import xnnpack_models as m


@dataclass
class Case:
    module: nn.Module
    inputs: tuple[Tensor, ...]
    more: list[tuple[Tensor, ...]] = field(default_factory=list)
    dynamic_shapes: Any = None
    recipe: str = "float"
    decomposed: bool = False  # by to_edge, before the backend is asked


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


SIZES = ({0: Dim("batch", min=2, max=4), 1: Dim("length", min=2, max=9)},)
ROWS = [(rand(2, 9, 16),)]
LENGTH = {1: Dim("length", min=1, max=24)}
HALF = torch.float16
CASES: dict[str, Callable[[], Case]] = {
    "mlp": lambda: Case(m.mlp(), (rand(5, 64),)),
    "mlp_dynamic": lambda: Case(
        m.mlp(), (rand(5, 64),), [(rand(1, 64),), (rand(9, 64),)], ({0: Dim("rows", max=16)},)
    ),
    "rows": lambda: Case(m.layer(), (rand(3, 5, 16),), ROWS, SIZES, decomposed=True),
    "rows_int8": lambda: Case(
        m.layer(), (rand(3, 5, 16),), ROWS, SIZES, "int8_static", decomposed=True
    ),
    "rows_int8_tensor": lambda: Case(
        m.layer(), (rand(3, 5, 16),), ROWS, SIZES, "int8_per_tensor", decomposed=True
    ),
    "rows_int8_dynamic": lambda: Case(
        m.layer(), (rand(3, 5, 16),), ROWS, SIZES, "int8_dynamic", decomposed=True
    ),
    "row_bias": lambda: Case(m.RowBias(), (rand(3, 8),)),
    "quantized": lambda: Case(m.Lambda(m.quantized), (rand(3, 4, 5) * 30,)),
    "dequantized": lambda: Case(
        m.Lambda(m.dequantized), (torch.arange(-120, 120, dtype=torch.int8).reshape(2, 3, 40),)
    ),
    "linear_no_bias": lambda: Case(nn.Linear(37, 19, bias=False), (rand(3, 7, 37),)),
    "matmul": lambda: Case(m.Lambda(lambda x, y: torch.bmm(x, y)), (rand(3, 5, 7), rand(3, 7, 4))),
    "unary": lambda: Case(m.Lambda(m.unary), (rand(3, 37) * 3,)),
    "binary": lambda: Case(m.Lambda(m.binary), (rand(2, 5, 7), rand(2, 5, 7), rand(5, 1))),
    "moved": lambda: Case(m.Lambda(m.moved), (rand(2, 4, 5, 6), rand(2, 4, 5, 6))),
    "pools": lambda: Case(m.Lambda(m.pools), (rand(2, 3, 9, 11),)),
    "convolutions": lambda: Case(m.Convolutions(), (rand(2, 4, 11, 9),)),
    "prelu": lambda: Case(m.Prelu(), (rand(2, 3, 9, 8),)),
    "audio": lambda: Case(m.Audio(), (rand(2, 3, 30),)),
    "signals": lambda: Case(m.Signals(), (rand(2, 4, 30),)),
    "signals_dynamic": lambda: Case(
        m.Signals(), (rand(2, 4, 30),), [(rand(2, 4, 3),)], ({2: Dim("length", min=3, max=40)},)
    ),
    "recurrent": lambda: Case(m.Recurrent(), (rand(2, 24, 8),)),
    "parts": lambda: Case(m.Lambda(m.parts), (rand(2, 6, 8),)),
    "parts_dynamic": lambda: Case(
        m.Lambda(m.parts), (rand(2, 6, 8),), [(rand(2, 3, 8),), (rand(2, 24, 8),)],
        {"args": ({1: Dim("length", min=3, max=24)},)},
    ),
    "given_weights": lambda: Case(
        m.Lambda(m.given_weights), (rand(3, 7), rand(7, 6), rand(5, 7))
    ),
    "mobile": lambda: Case(m.mobile(), (rand(1, 3, 32, 32),), [(rand(1, 3, 32, 32),)]),
    "resnet": lambda: Case(m.resnet(), (rand(1, 3, 40, 40),)),
    "resnet_dynamic": lambda: Case(
        m.resnet(), (rand(2, 3, 40, 40),), [(rand(1, 3, 40, 40),)], ({0: Dim("n", max=4)},)
    ),
    "attention": lambda: Case(m.Attention(), (rand(3, 6, 16), rand(3, 9, 16), rand(3, 9, 8))),
    "block": lambda: Case(
        m.Block(), (rand(1, 8, 32),), [(rand(1, 1, 32),), (rand(1, 24, 32),)], (LENGTH,)
    ),
    "block_tanh": lambda: Case(m.Block(gelu="tanh"), (rand(2, 8, 32),)),
    "squeeze_excite": lambda: Case(m.SqueezeExcite(), (rand(1, 8, 10, 9),)),
    "inception": lambda: Case(m.Inception(), (rand(2, 8, 9, 10),)),
    "unet": lambda: Case(m.UNet(), (rand(1, 3, 16, 12),)),
    "dense": lambda: Case(m.Dense(), (rand(2, 6, 8, 8),)),
    "conv_next": lambda: Case(m.ConvNext(), (rand(1, 8, 9, 7),)),
    "patches": lambda: Case(m.Patches(), (rand(1, 3, 16, 16),)),
    "rotary": lambda: Case(
        m.Rotary(), (rand(1, 8, 32),), [(rand(1, 1, 32),), (rand(1, 24, 32),)], (LENGTH,)
    ),
    "rotary_half": lambda: Case(m.Rotary().to(HALF), (rand(1, 8, 32).to(HALF),)),
    "mlp_half": lambda: Case(m.mlp().to(HALF), (rand(5, 64).to(HALF),)),
    "mlp_bfloat": lambda: Case(
        m.mlp().to(torch.bfloat16), (rand(5, 64).to(torch.bfloat16),), recipe="bf16"
    ),
    "unary_half": lambda: Case(m.Lambda(m.unary), ((rand(3, 37)).to(HALF),)),
    "binary_half": lambda: Case(
        m.Lambda(m.binary), (rand(2, 5, 7).to(HALF), rand(2, 5, 7).to(HALF), rand(5, 1).to(HALF))
    ),
    "moved_half": lambda: Case(
        m.Lambda(m.moved), (rand(2, 4, 5, 6).to(HALF), rand(2, 4, 5, 6).to(HALF))
    ),
    "pools_half": lambda: Case(m.Lambda(m.pools), (rand(2, 3, 9, 11).to(HALF),)),
    "mobile_half": lambda: Case(m.mobile().to(HALF), (rand(1, 3, 32, 32).to(HALF),)),
    "block_half": lambda: Case(m.Block().to(HALF), (rand(1, 8, 32).to(HALF),)),
    "attention_half": lambda: Case(
        m.Attention(), (rand(3, 6, 16).to(HALF), rand(3, 9, 16).to(HALF), rand(3, 9, 8).to(HALF))
    ),
    "mlp_int8_dynamic": lambda: Case(
        m.mlp(), (rand(5, 64),), [(rand(1, 64),)], ({0: Dim("rows", max=16)},), "int8_dynamic"
    ),
    "linear_int8_dynamic_odd": lambda: Case(
        nn.Linear(37, 19, bias=False), (rand(2, 3, 37),), recipe="int8_dynamic"
    ),
    "block_int8_dynamic": lambda: Case(m.Block(), (rand(1, 8, 32),), recipe="int8_dynamic"),
    "matrices_int8_dynamic": lambda: Case(
        m.Matrices(), (rand(3, 5, 32),), recipe="int8_dynamic"
    ),
    "conv_int8_dynamic": lambda: Case(
        nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3)),
        (rand(2, 3, 15, 15),), recipe="int8_dynamic",
    ),
    "images_int8_dynamic": lambda: Case(
        nn.Sequential(
            nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), groups=2), nn.ConvTranspose2d(6, 5, 3, 2, 1, 1)
        ),
        (rand(2, 4, 11, 9),), recipe="int8_dynamic",
    ),
    "mobile_int8": lambda: Case(m.mobile(), (rand(1, 3, 32, 32),), recipe="int8_static"),
    "mobile_int8_tensor": lambda: Case(m.mobile(), (rand(1, 3, 32, 32),), recipe="int8_per_tensor"),
    "resnet_int8": lambda: Case(m.resnet(), (rand(1, 3, 40, 40),), recipe="int8_static"),
    "squeeze_excite_int8": lambda: Case(
        m.SqueezeExcite(), (rand(1, 8, 10, 9),), recipe="int8_static"
    ),
    "inception_int8": lambda: Case(m.Inception(), (rand(2, 8, 9, 10),), recipe="int8_static"),
    "unet_int8": lambda: Case(m.UNet(), (rand(1, 3, 16, 12),), recipe="int8_static"),
    "patches_int8": lambda: Case(m.Patches(), (rand(1, 3, 16, 16),), recipe="int8_static"),
    "block_int8": lambda: Case(m.Block(), (rand(1, 8, 32),), recipe="int8_static"),
    "mlp_int8_qat": lambda: Case(m.mlp(), (rand(5, 64),), recipe="int8_qat"),
    "resnet_int8_qat": lambda: Case(m.resnet(), (rand(2, 3, 40, 40),), recipe="int8_qat"),
    "patches_int8_dynamic": lambda: Case(
        m.Patches(), (rand(1, 3, 16, 16),), recipe="int8_dynamic"
    ),
    "rotary_int8_dynamic": lambda: Case(
        m.Rotary(), (rand(1, 8, 32),), [(rand(1, 24, 32),)], (LENGTH,), "int8_dynamic"
    ),
    "rotary_int4_group": lambda: Case(
        m.Rotary(), (rand(1, 8, 32),), [(rand(1, 24, 32),)], (LENGTH,), "int4_group"
    ),
    "static_int8": lambda: Case(m.StaticOps(), (rand(2, 3, 12, 12),), recipe="int8_static"),
    "mlp_int8": lambda: Case(m.mlp(), (rand(5, 64),), recipe="int8_static"),
    "linear_int4_channel": lambda: Case(m.mlp(), (rand(5, 64),), recipe="int4_channel"),
    "linear_int4_group": lambda: Case(
        m.mlp(), (rand(5, 64),), [(rand(1, 64),)], ({0: Dim("rows", max=16)},), "int4_group"
    ),
    "block_int4_group": lambda: Case(m.Block(), (rand(1, 8, 32),), recipe="int4_group"),
    "linear_int8_torchao": lambda: Case(m.mlp(), (rand(5, 64),), recipe="int8_torchao"),
    "linear_int4_bfloat": lambda: Case(
        m.mlp().to(torch.bfloat16), (rand(5, 64).to(torch.bfloat16),), recipe="int4_group"
    ),
    "linear_int4_half": lambda: Case(
        m.mlp().to(HALF), (rand(5, 64).to(HALF),), recipe="int4_group"
    ),
}  # fmt: skip


def quantized_pt2e(case: Case, fold: bool = True) -> nn.Module:
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import (
        convert_pt2e,
        prepare_pt2e,
        prepare_qat_pt2e,
    )

    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    is_qat = case.recipe == "int8_qat"
    config = get_symmetric_quantization_config(
        is_per_channel=case.recipe != "int8_per_tensor",
        is_dynamic=case.recipe == "int8_dynamic",
        is_qat=is_qat,
    )
    quantizer = XNNPACKQuantizer().set_global(config)
    graph = torch.export.export(
        case.module.train(is_qat), case.inputs, dynamic_shapes=case.dynamic_shapes, strict=False
    ).module()
    prepared = (prepare_qat_pt2e if is_qat else prepare_pt2e)(graph, quantizer)
    for inputs in [case.inputs, *case.more]:
        prepared(*inputs)
    if is_qat:
        move_exported_model_to_eval(prepared)
    return convert_pt2e(prepared, fold_quantize=fold)


def quantized_torchao(case: Case) -> nn.Module:
    from torchao.quantization import quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig

    bits = torch.int8 if case.recipe == "int8_torchao" else torch.int4
    groups = PerGroup(32) if case.recipe == "int4_group" else PerAxis(0)
    quantize_(
        case.module,
        Int8DynamicActivationIntxWeightConfig(weight_dtype=bits, weight_granularity=groups),
    )
    return case.module


def export(name: str, folder: Path) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge, to_edge_transform_and_lower
    from executorch.runtime import Runtime

    torch.manual_seed(0)
    case = CASES[name]()
    module = case.module.eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.uniform_(-0.2, 0.2)
            part.running_var.uniform_(0.5, 1.5)
    with torch.no_grad():
        if case.recipe.startswith("int8_") and case.recipe != "int8_torchao":
            module = quantized_pt2e(case)
        elif case.recipe.startswith("int"):
            module = quantized_torchao(case)
        program = torch.export.export(
            module, case.inputs, dynamic_shapes=case.dynamic_shapes, strict=False
        )
    partitioner = XnnpackPartitioner(enable_bf16=case.inputs[0].dtype == torch.bfloat16)
    if case.decomposed:
        edge = to_edge(program).to_backend(partitioner)
    else:
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    lowered = edge.to_executorch()
    (folder / f"{name}.pte").write_bytes(lowered.buffer)
    method = Runtime.get().load_program(folder / f"{name}.pte").load_method("forward")
    runs = []
    for inputs in [case.inputs, *case.more]:
        with torch.no_grad():
            eager = torch.utils._pytree.tree_leaves(copy.deepcopy(module)(*inputs))
        here = [x.clone() for x in method.execute(inputs)]
        runs.append((list(inputs), eager, here))
    torch.save(runs, folder / f"{name}.pt")


def run(name: str, folder: Path) -> None:
    import executorch.kernels.quantized  # noqa: F401  (operators of what is left out)
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(folder / f"{name}.pte").load_method("forward")
    runs = torch.load(folder / f"{name}.pt", weights_only=True)
    results = [[x.clone() for x in method.execute(inputs)] for inputs, *_ in runs]
    torch.save(results, folder / f"{name}.out")


LIMIT = 240  # seconds, after which a case counts as one that the process did not survive


if __name__ == "__main__":
    action = {"export": export, "run": run}[sys.argv[1]]
    for case_name in sys.argv[3:] or list(CASES):
        print(f"case {case_name}", flush=True)
        signal.alarm(LIMIT)
        try:
            action(case_name, Path(sys.argv[2]))
        except Exception:
            traceback.print_exc()
