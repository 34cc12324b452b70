"""Old spellings work; each test of start-up behaviour runs in an interpreter of its own."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import executorch.compat
from executorch.compat import hook

executorch.compat.hook.install()
ROOT = Path(__file__).resolve().parents[2]


def rows():
    for old, home in hook._MODULES.items():
        yield old, home
    for module, names in hook._NAMES.items():
        for name, (home, home_name) in names.items():
            yield f"{module}:{name}", f"{home}:{home_name}"


def is_there(module):
    """Whether the home's package is part of this installation."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        if importlib.util.find_spec(".".join(parts[:i])) is None:
            return False
    return True


@pytest.mark.parametrize("old, home", list(rows()))
def test_every_row_leads_home(old, home):
    old_module, _, old_name = old.partition(":")
    home_module, _, home_name = home.partition(":")
    if not is_there(home_module):
        pytest.skip(f"{home_module} is not installed")
    old_value, home_value = (
        importlib.import_module(old_module),
        importlib.import_module(home_module),
    )
    if old_name:
        old_value, home_value = getattr(old_value, old_name), getattr(home_value, home_name)
    assert old_value is home_value


def test_old_module_whose_home_is_missing_says_where_it_went(monkeypatch):
    monkeypatch.setitem(hook._MODULES, "torch.gone", "executorch.no_such_home")
    with pytest.raises(ModuleNotFoundError, match="torch.gone is now executorch.no_such_home"):
        importlib.import_module("torch.gone")


@pytest.mark.parametrize(
    "old, home",
    [
        ("executorch.sdk.inspector", "executorch.devtools.inspector"),
        ("executorch.sdk.inspector.inspector", "executorch.devtools.inspector._inspector"),
        ("executorch.sdk.bundled_program.config", "executorch.devtools.bundled_program.config"),
        (
            "executorch.exir.passes._quant_patterns_and_replacements",
            "executorch.exir.passes.quantized_ops_registry",
        ),
    ],
)
def test_our_own_old_modules_are_their_homes(old, home):
    assert importlib.import_module(old) is importlib.import_module(home)
    assert importlib.import_module(home).__name__ == home


def test_our_own_old_modules_need_no_hook():
    code = (
        "from executorch.sdk import generate_etrecord, Inspector; import sys, torch.export;"
        "print('executorch.compat' in sys.modules, hasattr(torch.export, 'dynamic_dim'))"
    )
    assert run(code).split() == ["False", "False"]


def test_old_module_below_ours_that_is_gone_says_where_it_went():
    with pytest.raises(ModuleNotFoundError, match="sdk.gone is now executorch.devtools.gone"):
        importlib.import_module("executorch.sdk.gone")


def test_importing_executorch_patches_nothing():
    code = (
        "import executorch.exir, executorch.runtime, torch.export, sys;"
        "print('executorch.compat' in sys.modules, hasattr(torch.export, 'dynamic_dim'))"
    )
    assert run(code).split() == ["False", "False"]


def run(code, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_hook_does_not_import_torch():
    out = run("import executorch.compat, sys; print('torch' in sys.modules)")
    assert out.strip() == "False"


def test_names_can_be_imported_before_anything_else_of_executorch():
    code = (
        "import executorch.compat\n"
        "from torch._export import capture_pre_autograd_graph\n"
        "from torch.export import export, export_for_training, dynamic_dim\n"
        "print(capture_pre_autograd_graph.__name__, dynamic_dim.__name__)"
    )
    assert run(code).split() == ["capture_pre_autograd_graph", "dynamic_dim"]


def test_runner_passes_arguments_on(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nfrom torch.export import dynamic_dim\nprint(sys.argv[1:])\n")
    out = subprocess.run(
        [sys.executable, "-m", "executorch.compat", str(script), "a", "b"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.strip() == "['a', 'b']"


def test_runner_imports_what_lies_beside_the_script_and_runs_modules(tmp_path):
    (tmp_path / "beside.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    (tmp_path / "script.py").write_text("import beside\n")
    start = [sys.executable, "-m", "executorch.compat"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for arguments, folder, expected in (
        ([str(tmp_path / "script.py"), "a"], ROOT, "beside ['a']"),
        (["-m", "beside", "a"], tmp_path, "__main__ ['a']"),
    ):
        out = subprocess.run(
            [*start, *arguments], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert out.stdout.strip() == expected, out.stderr


def test_runner_refuses_options_that_it_does_not_have():
    done = subprocess.run(
        [sys.executable, "-m", "executorch.compat", "--no-such"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "script.py [arguments]" in done.stderr


def add(x, y):
    return x + y


def ones(*shape):
    return torch.ones(shape)


def test_functions_are_exported_and_programs_called():
    program = torch.export.export(add, (ones(3, 3), ones(3, 3)))
    assert torch.equal(program(ones(3, 3), ones(3, 3)), 2 * ones(3, 3))
    assert [n.name for n in program.graph.nodes][:2] == ["x", "y"]
    with pytest.raises((RuntimeError, AssertionError)):
        program(ones(3, 2), ones(3, 2))


def constrained():
    from torch._export import capture_pre_autograd_graph
    from torch.export import dynamic_dim

    args = (ones(3, 3), torch.zeros(3, 3))
    constraints = [
        dynamic_dim(args[0], 1),
        1 <= dynamic_dim(args[0], 1),  # noqa: SIM300 (as the documents wrote it)
        dynamic_dim(args[0], 1) <= 10,
        dynamic_dim(args[1], 1) == dynamic_dim(args[0], 1),
    ]
    program = torch.export.export(add, args, constraints=constraints)
    return program, capture_pre_autograd_graph(add, args, constraints=constraints)


def test_constraints_give_one_range_to_equal_dims():
    program, captured = constrained()
    assert [str(r) for r in program.range_constraints.values()] == ["VR[1, 10]"]
    for n in (2, 3, 10):
        assert program(ones(3, n), ones(3, n)).shape == (3, n)
        assert captured(ones(3, n), ones(3, n)).shape == (3, n)


@pytest.mark.parametrize("widths", [(15, 15), (11, 11), (3, 2)])
def test_sizes_outside_of_the_constraints_raise(widths):
    program, captured = constrained()
    for called in (program, captured):
        with pytest.raises((RuntimeError, AssertionError)):
            called(ones(3, widths[0]), ones(3, widths[1]))


def test_constraint_has_no_truth_value():
    from torch.export import dynamic_dim

    with pytest.raises(TypeError, match="two constraints"):
        bool(2 <= dynamic_dim(ones(3), 0) <= 5)


def test_constraint_of_a_tensor_that_is_no_input_is_refused():
    from torch.export import dynamic_dim

    with pytest.raises(ValueError, match="no example input"):
        torch.export.export(add, (ones(3), ones(3)), constraints=[dynamic_dim(ones(3), 0)])


def test_bound_methods_keep_their_weights():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def encode(self, x):
            return x * self.w

    program = torch.export.export(Model().encode, (ones(2),))
    assert len(program.graph_signature.parameters) == 1
