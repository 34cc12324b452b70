"""`executorch.runtime` as Python expects it: modules to call, texts, arrays that are not copied."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.runtime import Module, Runtime


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        return x * 2


class Sums(NamedTuple):
    plus: torch.Tensor
    total: torch.Tensor


class Both(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Sums:
        return Sums(x + 1, x.sum())


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dynamic = ({0: torch.export.Dim("n", max=6)}, None)
    x = torch.ones(2, 3)
    programs = {
        "forward": torch.export.export(Twice(), (x, 1.0), dynamic_shapes=dynamic),
        "both": torch.export.export(Both(), (x,)),
    }
    written = tmp_path_factory.mktemp("runtime") / "two.pte"
    to_edge(programs).to_executorch().save(str(written))
    return written


def test_methods_are_called_by_name(path: Path) -> None:
    module = Module(path)
    x = torch.arange(6.0).reshape(2, 3)
    torch.testing.assert_close(module(x, 1.0), 2 * x)
    plus, total = module.both(x)
    torch.testing.assert_close(plus, x + 1)
    torch.testing.assert_close(module["both"](x)[1], total)
    assert sorted(module) == ["both", "forward"]
    assert "both" in dir(module)
    with pytest.raises(AttributeError, match="no method 'decode'"):
        module.decode(x)
    with pytest.raises(KeyError, match="no method 'decode'"):
        module["decode"]


def test_inputs_are_given_by_the_models_names(path: Path) -> None:
    module = Module(path)
    x = torch.ones(2, 3)
    for y in (module(x=x, scale=1.0), module(x, scale=1.0), module["forward"](scale=1.0, x=x)):
        torch.testing.assert_close(y, 2 * x)
    method = Runtime.get().load_program(path).load_method("forward")
    assert method.input_names == ["x", "scale"]
    assert Runtime.get().load_program(path).load_method("both").output_names == ["plus", "total"]
    for call, cause in (
        (lambda: module(x=x, size=1.0), "forward has no input 'size'; it has x, scale"),
        (lambda: module(x, x=x, scale=1.0), "input 'x' was given twice"),
        (lambda: module(x=x), "input 'scale' was not given"),
    ):
        with pytest.raises(TypeError, match=cause):
            call()
    with pytest.raises(RuntimeError, match=r"forward: input 0 \(x\) has shape \(7, 3\)"):
        module(torch.ones(7, 3), 1.0)
    with pytest.raises(TypeError, match=r"forward: input 1 \(scale\) is a dict"):
        module(x, {})


def test_a_program_without_names_says_so(path: Path) -> None:
    program = torch.export.export(Both(), (torch.ones(2, 3),))
    config = ExecutorchBackendConfig(emit_debug_identity=False)
    module = Module(to_edge(program).to_executorch(config).buffer)
    assert "forward(float32[2, 3]) -> (float32[2, 3], float32[])" in repr(module)
    with pytest.raises(TypeError, match="the program does not say what its inputs are called"):
        module(x=torch.ones(2, 3))


def test_a_copy_of_a_module_is_of_the_same_program(path: Path) -> None:
    module = Module(path)
    copied = copy.copy(module)
    assert copied.program is module.program
    assert copied.both(torch.ones(2, 3))[1] == 6


def test_programs_and_methods_show_what_they_take_and_return(path: Path) -> None:
    forward = "forward(x: float32[6, 3], scale: Double) -> float32[6, 3]"
    both = "both(x: float32[2, 3]) -> (plus: float32[2, 3], total: float32[])"
    program = Runtime.get().load_program(path)
    assert repr(program.load_method("forward")) == f"<Method {forward}>"
    for shown in (repr(program), repr(Module(path))):
        assert forward in shown and both in shown
    for shown in (program._repr_html_(), Module(path)._repr_html_()):
        assert shown.startswith("<table>") and shown.endswith("</table>")
        assert (
            "<td>forward</td><td>x: float32[6, 3]<br>scale: Double</td><td>float32[6, 3]</td>"
            in shown
        )


def test_text_of_a_file_is_escaped_in_html(path: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a<b.pte"
    odd.write_bytes(path.read_bytes())
    assert "a&lt;b.pte" in Module(odd)._repr_html_()


def test_names_and_paths_need_not_be_utf8(path: Path, tmp_path: Path) -> None:
    x = torch.ones(2, 3)
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xe9t\xe9")
    os.mkdir(folder)
    odd = Path(folder, "two.pte")
    odd.write_bytes(path.read_bytes().replace(b"both", b"bo\xff\xfe"))
    program = Runtime.get().load_program(odd)
    assert program.method_names == {"forward", "bo\udcff\udcfe"}
    assert program.load_method("bo\udcff\udcfe").execute([x])[1] == 6
    for shown in (repr(program), repr(Module(odd)), Module(odd)._repr_html_()):
        assert r"bo\xff\xfe" in shown and shown.isascii()
    assert repr(program.metadata("bo\udcff\udcfe")).startswith(r"MethodMeta(name='bo\xff\xfe'")
    with pytest.raises(RuntimeError, match=r"(?s)bo\\xff\\xfe: input 0 \(x\).*has shape \(2\)"):
        program.load_method("bo\udcff\udcfe").execute([x[:, 0]])
    with pytest.raises(RuntimeError, match=r"no method nix; it has:(.|\n)*bo\\xff\\xfe"):
        program.metadata("nix")
    odd.write_bytes(b"x")
    with pytest.raises(RuntimeError, match=r"the program /.*/\\xe9t\\xe9/two.pte: InvalidArgument"):
        Runtime.get().load_program(odd)
    with pytest.raises(FileNotFoundError, match="two.ptd"):
        Runtime.get().load_program(path, data_path=odd.with_suffix(".ptd"))


def test_a_closed_program_says_so_and_results_stay(path: Path) -> None:
    x = torch.ones(2, 3)
    with Module(path, copy_outputs=False) as module:
        y = module(x, 1.0)
    torch.testing.assert_close(y, 2 * x)
    assert "closed" in repr(module)
    with pytest.raises(ValueError, match="closed"):
        module(x, 1.0)
    with Runtime.get().load_program(path) as program:
        method = program.load_method("forward")
        assert method is not None
    with pytest.raises(ValueError, match="closed"):
        method.execute([x, 1.0])
    assert "closed" in repr(method)
    assert [each._repr_html_() for each in (module, program, method)] == [None] * 3
    with pytest.raises(ValueError, match="closed"):
        program.metadata("forward")


def test_outputs_are_shared_when_that_is_asked_for(path: Path) -> None:
    one, two = torch.ones(2, 3), torch.full((2, 3), 2.0)
    shared = Module(path, copy_outputs=False)
    first = shared(one, 1.0)
    assert shared(two, 1.0).data_ptr() == first.data_ptr()
    torch.testing.assert_close(first, 2 * two)
    copying = Module(path)
    first = copying(one, 1.0)
    assert copying(two, 1.0).data_ptr() != first.data_ptr()
    torch.testing.assert_close(first, 2 * one)


def test_an_input_that_fits_is_read_where_it_is(tmp_path: Path) -> None:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    class Same(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x, x + 1

    planning = MemoryPlanningPass(alloc_graph_input=False)
    exported = torch.export.export(Same(), (torch.ones(2, 3),))
    program = to_edge(exported).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=planning)
    )
    module = Module(program.buffer, copy_outputs=False)
    torch_x, numpy_x = torch.ones(2, 3), np.ones((2, 3), np.float32)
    assert module(torch_x)[0].data_ptr() == torch_x.data_ptr()
    assert module(numpy_x)[0].data_ptr() == numpy_x.ctypes.data
    # Another layout is made contiguous.
    transposed = torch.arange(6.0).reshape(3, 2).T
    same, plus = module(transposed)
    assert same.data_ptr() != transposed.data_ptr()
    torch.testing.assert_close(same, transposed, check_stride=False)
    torch.testing.assert_close(plus, transposed + 1, check_stride=False)


def test_other_threads_run_while_a_method_does() -> None:
    class Long(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(40):
                x = torch.tanh(x @ x)
            return x

    x = torch.randn(600, 600) / 30
    module = Module(to_edge(torch.export.export(Long(), (x,))).to_executorch().buffer)
    module(x)
    started, ended = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        module(x)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    steps = 0
    while not ended.is_set():
        steps += 1
    thread.join()
    # Had the call held the interpreter, it would have ended before this thread took a step.
    assert steps > 1000


def test_importing_and_running_needs_neither_torch_nor_numpy(path: Path) -> None:
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['torch'] = None\n"
        "from executorch.runtime import Module\n"
        f"print(Module({str(path)!r}))\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('executorch',)"
        " and 'exir' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "forward(x: float32[6, 3], scale: Double)" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


class Backwards(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0).flip(0).amax(0)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is given back on Linux only")
def test_memory_of_large_intermediate_results_goes_back() -> None:
    most = 4 << 20
    length = torch.export.Dim("length", max=most)
    program = torch.export.export(Backwards(), (torch.ones(7),), dynamic_shapes=({0: length},))
    method = Runtime.get().load_program(to_edge(program).to_executorch().buffer)
    forward = method.load_method("forward")
    assert forward is not None
    ones = torch.ones(most)  # lives until the end, so that only the method gives memory back
    for _ in range(2):
        assert forward.execute([ones])[0] == most
    large = resident_bytes()
    for _ in range(2):
        assert forward.execute([torch.ones(3)])[0] == 3
    assert large - resident_bytes() > 2 * most  # of two results of 4 * most bytes each


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
