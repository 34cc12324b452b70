"""One side of the benchmark in a process of its own, for sides that are driven from Python.

    python _worker.py SIDE THREADS        answers JSON commands, as runner.cpp describes
    python _worker.py write KIND < JSON   exports: {case name: file}, one {"case", "error"} a line

SIDE is eager, upstream, onnxruntime or openvino; KIND ours, upstream, xnnpack or onnx.
Needs torch only for eager and for exporting.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

Run = Callable[[], np.ndarray]


def eager(command: dict, threads: int) -> tuple[Run, dict]:
    import torch
    from _all import CASES
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    torch.set_num_threads(threads)
    case = CASES[command["case"]]
    module, inputs = case.module(), case.inputs()

    def run() -> np.ndarray:
        with torch.inference_mode():
            output = module(*inputs)
        bfloat16 = output.dtype == torch.bfloat16  # which numpy does not know
        return (output.view(torch.int16) if bfloat16 else output).numpy()

    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel([SDPBackend.MATH]), counter:  # of products, none fused
        output = module(*inputs)
    work = {"flops": counter.get_total_flops(), **case.work(module, inputs, output)}
    dtype = str(output.dtype).removeprefix("torch.")
    facts = {"version": torch.__version__, "dtype": dtype, **work}
    if case.quantize:
        facts["quantization"] = quantization_error(case, inputs, output)
    return run, facts


def quantization_error(case, inputs: tuple, output) -> float:
    """How far PyTorch's quantized module lies from the float one, relative to its norm."""
    import torch

    with torch.no_grad():
        module = quantized(case, case.inputs(exported=True), case.dynamic_shapes())
        found = module(*inputs)
    return float((found - output).norm() / output.norm().clamp(min=1e-30))


def upstream(command: dict, threads: int) -> tuple[Run, dict]:
    import importlib.metadata

    import torch

    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    torch.set_num_threads(threads)
    portable_lib._unsafe_reset_threadpool(threads)
    method = Runtime.get().load_program(command["program"]).load_method("forward")
    inputs = [torch.from_numpy(x) for x in load_inputs(command)]
    version = importlib.metadata.version("executorch")
    return lambda: method.execute(inputs)[0].numpy(), {"version": version}


def onnxruntime(command: dict, threads: int) -> tuple[Run, dict]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(command["program"], options, ["CPUExecutionProvider"])
    feed = {i.name: x for i, x in zip(session.get_inputs(), load_inputs(command), strict=True)}
    return lambda: session.run(None, feed)[0], {"version": ort.__version__}


def openvino(command: dict, threads: int) -> tuple[Run, dict]:
    import openvino as ov

    config = {
        "INFERENCE_PRECISION_HINT": "f32",  # else bf16 where the processor has it
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = ov.Core().compile_model(command["program"], "CPU", config).create_infer_request()
    inputs = [ov.Tensor(x, shared_memory=True) for x in load_inputs(command)]
    version = ov.__version__.split("-")[0]
    return lambda: next(iter(request.infer(inputs, share_outputs=True).values())), {
        "version": version
    }


def load_inputs(command: dict) -> list[np.ndarray]:
    return [np.fromfile(x["file"], dtype=x["dtype"]).reshape(x["sizes"]) for x in command["inputs"]]


def serve(side: str, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    run: Run | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "open":
                run = None
                run, facts = globals()[side](command, threads)
                start = time.perf_counter()
                output = run()
                seconds = time.perf_counter() - start
                np.ascontiguousarray(output).tofile(command["output"])
                answer = {"seconds": seconds, "sizes": output.shape, **facts}
            else:
                answer = {"seconds": timed(run, command["calls"])}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def timed(run: Run, calls: int) -> list[float]:
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


def write(kind: str, files: dict[str, str]) -> None:
    """Export the cases' programs; a failure of one is reported and the others go on."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from _all import CASES

    for name, file in files.items():
        try:
            part = Path(file).with_suffix(".part")
            (write_onnx if kind == "onnx" else write_pte)(CASES[name], part, kind)
            part.replace(file)
            error = None
        except Exception as e:
            error = f"{type(e).__name__}: {e}".splitlines()[0]
        print(json.dumps({"case": name, "error": error}), file=answers, flush=True)


def write_pte(case, path: Path, kind: str) -> None:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from executorch.exir import (
        EdgeCompileConfig,
        ExecutorchBackendConfig,
        to_edge,
        to_edge_transform_and_lower,
    )
    from executorch.exir.passes import MemoryPlanningPass

    config = EdgeCompileConfig(_check_ir_validity=False)
    with torch.no_grad(), sdpa_kernel([SDPBackend.MATH]):
        inputs, shapes = case.inputs(exported=True), case.dynamic_shapes()
        module = quantized(case, inputs, shapes) if case.quantize else case.module()
        program = torch.export.export(module, inputs, dynamic_shapes=shapes)
        delegates = partitioners(case, kind)
        if delegates:
            edge = to_edge_transform_and_lower(
                program, partitioner=delegates, compile_config=config
            )
        else:
            edge = to_edge(program, compile_config=config)
        planning = MemoryPlanningPass(alloc_graph_input=case.plans_inputs)
        lowered = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    with path.open("wb") as f:
        lowered.write_to_file(f)


def partitioners(case, kind: str) -> list:
    """Ours leaves floats to the operators, which are fused when a program is loaded; upstream's
    way is the tutorials'."""
    if (kind == "xnnpack" and not case.quantize.endswith("weights")) or case.quantize == "static":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        if case.quantize in ("", "static"):
            return [XnnpackPartitioner()]
    if not case.quantize or case.quantize.endswith("weights"):
        return []
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
    )

    dynamic = XnnpackDynamicallyQuantizedPartitioner()
    return [dynamic, XnnpackPartitioner()] if kind == "xnnpack" else [dynamic]


def quantized(case, inputs: tuple, shapes):
    """The case's module in the tutorials' ways, which both sides spell alike."""
    import torch
    from torchao.quantization import (
        Int8DynamicActivationIntxWeightConfig,
        IntxWeightOnlyConfig,
        quantize_,
    )
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    module = case.module()
    configs = {
        "int4": Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32)),
        "int8 weights": IntxWeightOnlyConfig(torch.int8, PerAxis(0)),
        "int4 weights": IntxWeightOnlyConfig(torch.int4, PerGroup(32)),
    }
    if case.quantize in configs:
        quantize_(module, configs[case.quantize])
        return module
    is_dynamic = case.quantize == "int8"
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    captured = torch.export.export(module, inputs, dynamic_shapes=shapes).module()
    prepared = prepare_pt2e(captured, XNNPACKQuantizer().set_global(config))
    prepared(*inputs)
    return convert_pt2e(prepared)


def write_onnx(case, path: Path, kind: str) -> None:
    if case.quantize:
        write_quantized_onnx(case, path)
        return
    import torch

    with torch.no_grad():
        torch.onnx.export(
            case.module(),
            case.inputs(exported=True),
            path,
            dynamo=True,
            external_data=False,
            dynamic_shapes=case.dynamic_shapes(),
            verbose=False,
        )


def write_quantized_onnx(case, path: Path) -> None:
    import onnx
    from onnxruntime import quantization as ortq
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.quantization.shape_inference import quant_pre_process

    whole = path.with_suffix(".float")
    write_onnx(replace(case, quantize=""), whole, "onnx")
    if case.quantize == "int8":
        ortq.quantize_dynamic(whole, path, per_channel=True, weight_type=ortq.QuantType.QInt8)
    elif case.quantize != "static":
        # Levels of accuracy: 4 has activations as integers, 1 as floats.
        bits, level = (int(case.quantize[3]), 1 if case.quantize.endswith("weights") else 4)
        quantizer = MatMulNBitsQuantizer(
            onnx.load(whole), bits=bits, block_size=32, is_symmetric=True, accuracy_level=level
        )
        quantizer.process()
        quantizer.model.save_model_to_file(str(path))
    else:
        names = [i.name for i in onnx.load(whole).graph.input]
        inputs = [x.numpy() for x in case.inputs(exported=True)]

        class Calibration(ortq.CalibrationDataReader):
            def __init__(self) -> None:
                self.rest = [dict(zip(names, inputs, strict=True))]

            def get_next(self) -> dict | None:
                return self.rest.pop() if self.rest else None

        # Batch norms go into convolutions first, and its products want activations without a sign.
        folded = path.with_suffix(".folded")
        quant_pre_process(whole, folded, skip_symbolic_shape=True)
        ortq.quantize_static(
            folded,
            path,
            Calibration(),
            per_channel=True,
            weight_type=ortq.QuantType.QInt8,
            activation_type=ortq.QuantType.QUInt8,
        )
        folded.unlink()
    whole.unlink()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "write":
        write(sys.argv[2], json.load(sys.stdin))
    else:
        serve(sys.argv[1], int(sys.argv[2]))
