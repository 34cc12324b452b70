"""Export GPT-2 small's shape with whichever executorch this Python has; print one JSON line."""

import json
import resource
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "nanogpt"))
from model import GPT, GPTConfig  # noqa: E402
from torch.export import Dim, export  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(path: str) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig()).eval()
    result = {"weight_bytes": sum(p.numel() * p.element_size() for p in model.parameters())}
    times = {}
    last = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal last
        now = time.perf_counter()
        times[name] = now - last
        last = now

    example = (torch.randint(0, 50257, (1, 1024)),)
    shapes = ({1: Dim("token_dim", max=1024)},)
    with sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
        program = export(model, example, dynamic_shapes=shapes)
    lap("torch.export")
    result["peak_torch_bytes"] = peak_bytes()

    from executorch.exir import EdgeCompileConfig, to_edge

    lap("import executorch.exir")
    edge = to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    lap("to_edge")
    lowered = edge.to_executorch()
    lap("to_executorch")
    with open(path, "wb") as f:
        lowered.write_to_file(f)
    lap("write")
    result["peak_bytes"] = peak_bytes()
    result["file_bytes"] = Path(path).stat().st_size
    result["seconds"] = times
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
