"""What an installed wheel must do, without a checkout: run by the Python that has it.

python check.py PROGRAM.pte BEGUN    runs the program, whose forward takes a float32 [2, 4]; with
                                     PyTorch installed it exports, compares and serves as well.
                                     BEGUN: when the installation began, in seconds of time.time()
"""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import string
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any


def main(program: str, begun: str) -> int:
    started = time.perf_counter()
    from executorch.runtime import Module, Runtime

    seconds = time.perf_counter() - started
    loaded = {"torch", "numpy"} & set(sys.modules)
    assert not loaded, f"executorch.runtime imports {loaded}"
    package = Path(sys.modules["executorch"].__file__ or "").parent
    assert package.parent.name == "site-packages", package
    exported = ("exir/operators.txt", "exir/quantized_schemas.txt")
    for name in ("py.typed", *exported, "extension/pybindings/_C.pyi"):
        assert (package / name).stat().st_size >= 0, name
    assert not list(package.rglob("*_test.py"))
    sources = [path.relative_to(package).parts[0] for path in package.rglob("*.cpp")]
    assert set(sources) == {"share"}, sources  # what selective builds compile
    assert (package / "lib/cmake/executorch/executorch-config.cmake").exists()
    runtime = Runtime.get()
    assert "XnnpackBackend" in runtime.backend_registry.registered_backend_names
    operators = runtime.operator_registry.operator_names
    assert len(operators) > 300, len(operators)
    module = Module(program)
    assert "float32[2, 4]" in repr(module)
    command = Path(sys.executable).with_name("executorch")
    for arguments in (["--version"], ["inspect", program], ["run", program, "--shape", "2x4"]):
        subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL)
    print(f"runtime: import {seconds:.3f} s, {len(operators)} operators")
    _tell("result of a program run", begun)
    if importlib.util.find_spec("torch"):
        _export(begun, command)
        _serve(begun, command)
    return 0


def _tell(what: str, begun: str) -> None:
    print(f"first {what}: {time.time() - float(begun):.1f} s after the installation began")


def seconds_to_import(*names: str) -> list[float]:
    """Of each after those before it, in a process of its own."""
    code = "import time\n" + "".join(
        f"start = time.perf_counter(); import {name}; print(time.perf_counter() - start)\n"
        for name in names
    )
    return [float(s) for s in subprocess.check_output([sys.executable, "-c", code]).split()]


def _export(begun: str, command: Path) -> None:
    import torch

    from executorch.devtools.parity import check_parity
    from executorch.exir import to_edge_transform_and_lower
    from executorch.export import export
    from executorch.runtime import Module

    model, x = torch.nn.Linear(4, 2).eval(), torch.ones(2, 4)
    session = export(model, [(x,)])
    torch.testing.assert_close(Module(session.get_pte_buffer())(x), model(x).detach())
    _tell("result of a model exported and run", begun)
    to_edge_transform_and_lower(torch.export.export(model, (x,))).to_executorch()
    assert check_parity(session.get_pte_buffer(), model, (x,)).passed
    subprocess.run([command, "export", "--help"], check=True, stdout=subprocess.DEVNULL)
    print("export: exported, ran, compared")
    names = ("torch", "executorch.exir", "executorch.export")
    times = zip(names, seconds_to_import(*names), strict=True)
    print("imports, one after the other:", *(f"{name} {s:.2f} s" for name, s in times))


def _serve(begun: str, command: Path) -> None:
    """A language model, from its module to the server's answer."""
    space = "\u0120"
    characters = ["<|endoftext|>", space, *string.ascii_letters, *".,!?':"]
    vocabulary = {text: token for token, text in enumerate(characters)}
    Path("vocab.json").write_text(json.dumps(vocabulary))
    _export_text_model("text.pte", len(vocabulary))
    arguments = ["serve", "text.pte", "--tokenizer", "vocab.json", "--port", "0"]
    with subprocess.Popen([command, *arguments], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"at (http://127\.0\.0\.1:\d+) ", said)
        assert found, said
        try:
            _ask(f"{found[1]}/health")
            request = {"prompt": "Good day", "max_tokens": 6, "temperature": 0, "model": "text"}
            answer = _ask(f"{found[1]}/v1/completions", request)
            assert answer["usage"]["completion_tokens"] == 6, answer
            assert len(answer["choices"][0]["text"]) == 6, answer
            _tell("text from the server", begun)
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 0


def _ask(url: str, request: dict[str, Any] | None = None) -> Any:
    data = None if request is None else json.dumps(request).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as response:
        return json.load(response)


def _export_text_model(path: str, words: int) -> None:
    """tokens int64 [1, t <= 40] -> logits [1, t, words]. One layer; it never ends a text."""
    import torch
    from torch.export import Dim, export

    from executorch.exir import make_incremental, to_edge

    class Text(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = torch.nn.Embedding(words, 16), torch.nn.Embedding(40, 16)
            self.qkv, self.head = torch.nn.Linear(16, 48), torch.nn.Linear(16, words)
            with torch.no_grad():
                self.head.bias[0] = -1e4

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
            q, k, v = (y[:, None] for y in self.qkv(x).split(16, 2))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.head(x + y[:, 0])  # type: ignore[no-any-return]

    torch.manual_seed(0)
    tokens = torch.zeros(1, 40, dtype=torch.int64)
    exported = export(Text().eval(), (tokens,), dynamic_shapes=({1: Dim("t", max=40)},))
    lengths = {"get_max_context_len": 40, "get_max_seq_len": 40, "get_eos_ids": [0]}
    manager = to_edge(make_incremental(exported), constant_methods=lengths).to_executorch()
    Path(path).write_bytes(manager.buffer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
