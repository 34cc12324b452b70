"""What an installed wheel must do, without a checkout: run by the Python that has it.

python check.py PROGRAM.pte    runs the program, whose forward takes a float32 [2, 4]; with PyTorch
                               installed it exports and compares as well
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path


def main(program: str) -> int:
    started = time.perf_counter()
    from executorch.runtime import Module, Runtime

    seconds = time.perf_counter() - started
    loaded = {"torch", "numpy"} & set(sys.modules)
    assert not loaded, f"executorch.runtime imports {loaded}"
    package = Path(sys.modules["executorch"].__file__ or "").parent
    assert package.parent.name == "site-packages", package
    for name in ("py.typed", "exir/operators.txt", "extension/pybindings/_C.pyi"):
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
    if importlib.util.find_spec("torch"):
        _export(program, command)
    return 0


def seconds_to_import(*names: str) -> list[float]:
    """Of each after those before it, in a process of its own."""
    code = "import time\n" + "".join(
        f"start = time.perf_counter(); import {name}; print(time.perf_counter() - start)\n"
        for name in names
    )
    return [float(s) for s in subprocess.check_output([sys.executable, "-c", code]).split()]


def _export(program: str, command: Path) -> None:
    names = ("torch", "executorch.exir", "executorch.export")
    times = zip(names, seconds_to_import(*names), strict=True)
    print("imports, one after the other:", *(f"{name} {s:.2f} s" for name, s in times))
    import torch

    from executorch.devtools.parity import check_parity
    from executorch.exir import to_edge_transform_and_lower
    from executorch.export import export
    from executorch.runtime import Module

    model, x = torch.nn.Linear(4, 2).eval(), torch.ones(2, 4)
    session = export(model, [(x,)])
    torch.testing.assert_close(Module(session.get_pte_buffer())(x), model(x).detach())
    to_edge_transform_and_lower(torch.export.export(model, (x,))).to_executorch()
    assert check_parity(session.get_pte_buffer(), model, (x,)).passed
    subprocess.run([command, "export", "--help"], check=True, stdout=subprocess.DEVNULL)
    print("export: exported, ran, compared")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
