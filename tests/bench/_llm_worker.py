"""One side of the benchmark of language models in a process of its own.

    python _llm_worker.py SIDE THREADS          answers JSON commands, one a line:
        {"do": "open", "shape", "format", "program"}
        {"do": "prefill", "tokens": N}   computes a text of N tokens anew; {"seconds": [s]}
        {"do": "decode", "tokens": K}    K more, one by one, then back to N; {"seconds": [K]}
        {"do": "check", "output"}        writes the logits after `check_tokens`, float32
    python _llm_worker.py write KIND SHAPE FORMAT FILE     KIND: ours, onnx, gguf, expected

SIDE is eager, onnxruntime, openvino or llamacpp. Sampling is no part of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _llm_llamacpp import LlamaCpp, write_gguf
from _llm_models import (
    SHAPES,
    Shape,
    WithPast,
    cache_type,
    check_tokens,
    decoder,
    is_router,
    no_past,
    rounded,
    tokens,
)
from torch import nn


class Eager:
    """Keys and values in buffers, a layer's attention as one operator."""

    def __init__(self, shape: Shape, command: dict, threads: int) -> None:
        torch.set_num_threads(threads)
        self.shape, self.model = shape, WithPast(decoder(shape))
        self.facts = {"version": torch.__version__}

    def reset(self) -> None:
        self.past = no_past(self.shape)

    def mark(self) -> None:
        self.marked = self.past

    def rewind(self) -> None:
        self.past = self.marked

    def step(self, ids: torch.Tensor) -> np.ndarray:
        """The logits after the last token."""
        with torch.inference_mode():
            logits, self.past = self.model(ids, self.past)
        return logits.numpy()


class OnnxRuntime(Eager):
    def __init__(self, shape: Shape, command: dict, threads: int) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(command["program"], options, ["CPUExecutionProvider"])
        self.names = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.shape, self.facts = shape, {"version": ort.__version__}
        self.ort = ort

    def reset(self) -> None:
        value = self.ort.OrtValue.ortvalue_from_numpy
        self.past = [value(t.numpy()) for t in no_past(self.shape)]

    def step(self, ids: torch.Tensor) -> np.ndarray:
        value = self.ort.OrtValue.ortvalue_from_numpy(ids.numpy())
        feed = dict(zip(self.names, [value, *self.past], strict=True))
        logits, *self.past = self.session.run_with_ort_values(self.outputs, feed)
        return logits.numpy()


class OpenVino(Eager):
    def __init__(self, shape: Shape, command: dict, threads: int) -> None:
        import openvino as ov
        from openvino._offline_transformations import apply_make_stateful_transformation

        model = ov.Core().read_model(command["program"])
        ins = [i.get_any_name() for i in model.inputs][1:]
        outs = [o.get_any_name() for o in model.outputs][1:]
        apply_make_stateful_transformation(model, dict(zip(ins, outs, strict=True)))
        if command["format"] != "fp32":
            import nncf

            modes = nncf.CompressWeightsMode
            mode = modes.INT8_SYM if command["format"] == "int8" else modes.INT4_SYM
            group = {} if command["format"] == "int8" else {"group_size": 32, "ratio": 1.0}
            model = nncf.compress_weights(model, mode=mode, **group)
        config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        if command["format"] == "fp32":  # else bf16 where the processor has it; bytes stay as fast
            config |= {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
        self.request = ov.Core().compile_model(model, "CPU", config).create_infer_request()
        self.ov, self.facts = ov, {"version": ov.__version__.split("-")[0]}

    def reset(self) -> None:
        self.request.reset_state()

    def mark(self) -> None:
        self.marked = [self.ov.Tensor(s.state.data.copy()) for s in self.request.query_state()]

    def rewind(self) -> None:
        for state, kept in zip(self.request.query_state(), self.marked, strict=True):
            state.state = kept

    def step(self, ids: torch.Tensor) -> np.ndarray:
        return self.request.infer([self.ov.Tensor(ids.numpy())], share_outputs=True)[0]


SIDES = {
    "eager": Eager,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "llamacpp": LlamaCpp,
}


class Text:
    """What a side is asked for, in terms of its steps."""

    def __init__(self, side: Any, shape: Shape) -> None:
        self.side, self.shape = side, shape

    def check(self, output: str) -> None:
        """A prompt, a wrong token that is taken back, the right one."""
        ids = check_tokens(self.shape)
        self.side.reset()
        self.side.step(ids[:, :-1])
        self.side.mark()
        self.side.step((ids[:, -1:] + 1) % self.shape.vocabulary)
        self.side.rewind()
        np.asarray(self.side.step(ids[:, -1:]), dtype=np.float32).tofile(output)

    def prefill(self, n: int) -> list[float]:
        self.side.reset()
        start = time.perf_counter()
        self.side.step(tokens(self.shape, n))
        seconds = time.perf_counter() - start
        self.side.mark()
        return [seconds]

    def decode(self, n: int) -> list[float]:
        seconds = []
        for i in range(n):
            ids = tokens(self.shape, 1, i)
            start = time.perf_counter()
            self.side.step(ids)
            seconds.append(time.perf_counter() - start)
        self.side.rewind()
        return seconds


def serve(side: str, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    text: Any = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "open":
                shape = SHAPES[command["shape"]]
                text = Text(SIDES[side](shape, command, threads), shape)
                answer = text.side.facts
            elif command["do"] == "check":
                text.check(command["output"])
                answer = {"seconds": 0}
            else:
                answer = {"seconds": getattr(text, command["do"])(command["tokens"])}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def write_ours(shape: Shape, form: str, file: Path) -> None:
    from executorch.exir import make_incremental, to_edge_transform_and_lower

    model = decoder(shape)
    partitioners: list[Any] = []
    if form != "fp32":
        from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
        from torchao.quantization.granularity import PerAxis, PerGroup

        from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
            XnnpackDynamicallyQuantizedPartitioner,
        )

        dtype, granularity = (
            (torch.int8, PerAxis(0)) if form == "int8" else (torch.int4, PerGroup(32))
        )
        config = Int8DynamicActivationIntxWeightConfig(
            weight_dtype=dtype, weight_granularity=granularity
        )
        quantize_(model, config, lambda m, name: isinstance(m, nn.Linear) and not is_router(name))
        partitioners = [XnnpackDynamicallyQuantizedPartitioner()]
    length = torch.export.Dim("tokens", max=shape.block - 1)
    program = torch.export.export(model, (tokens(shape, 9),), dynamic_shapes=({1: length},))
    program = make_incremental(program, cache_dtype=cache_type(form))
    edge = to_edge_transform_and_lower(program, partitioner=partitioners)
    with file.open("wb") as f:
        edge.to_executorch().write_to_file(f)


def write_onnx(shape: Shape, form: str, file: Path) -> None:
    new, seen = torch.export.Dim("new", max=shape.block), torch.export.Dim("seen", max=shape.block)
    past = [torch.zeros(1, shape.kv_heads, 5, shape.head) for _ in range(2 * shape.layers)]
    whole = file if form == "fp32" else file.with_suffix(".whole")
    with torch.no_grad():
        torch.onnx.export(
            WithPast(decoder(shape)),
            (tokens(shape, 3), past),
            whole,
            dynamo=True,
            external_data=shape is not SHAPES["gpt2"],
            dynamic_shapes=({1: new}, [{2: seen}] * len(past)),
            verbose=False,
        )
    if form == "int8":
        from onnxruntime import quantization as ortq

        ortq.quantize_dynamic(whole, file, per_channel=True, weight_type=ortq.QuantType.QInt8)
    elif form == "int4":
        import onnx
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        quantizer = MatMulNBitsQuantizer(
            onnx.load(whole), block_size=32, is_symmetric=True, accuracy_level=4
        )  # 4: activations as integers
        quantizer.process()
        quantizer.model.save_model_to_file(str(file))


def write_expected(shape: Shape, form: str, file: Path) -> None:
    """Two rows of logits, float32: the model's, and those with its matrices in the format."""
    model, ids = decoder(shape), check_tokens(shape)
    with torch.inference_mode():
        rows = [model(ids), rounded(model, form)(ids)]
    torch.stack(rows).numpy().tofile(file)


WRITERS = {
    "ours": write_ours,
    "onnx": write_onnx,
    "gguf": write_gguf,
    "expected": write_expected,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "write":
        kind, name, form, target = sys.argv[2:6]
        part = Path(target).with_suffix(".part")
        WRITERS[kind](SHAPES[name], form, part)
        part.replace(target)
    else:
        serve(sys.argv[1], int(sys.argv[2]))
