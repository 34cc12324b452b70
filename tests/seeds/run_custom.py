"""Builds the custom operator of a page into one library and runs a model with it, as eager module
and as program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from tests.seeds.cut import ROOT, alterations, code, text
from tests.seeds.results import Failed, Result
from tests.seeds.rows import CustomOperator, Cut
from tests.seeds.run_cpp import build_environment

HEADER = """#pragma once
#include <executorch/runtime/kernel/kernel_includes.h>
using namespace torch::executor;
Tensor& custom_linear_out(const Tensor& weight, const Tensor& input, optional<Tensor> bias,
                          Tensor& out);
"""

CMAKE = """cmake_minimum_required(VERSION 3.19)
project(custom_linear LANGUAGES C CXX)
add_subdirectory(executorch)
gen_custom_ops_aot_lib(LIB_NAME custom_linear
                       KERNEL_SOURCES custom_linear.cpp custom_linear_pytorch.cpp)
"""

BEFORE = """import torch
from torch import nn
"""

# The user's class, which the page names and does not show. Its arguments are the page's.
MODEL = """

class CustomLinear(nn.Module):
    def __init__(self, in_features, out_features, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_features, out_features))
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())

    def forward(self, x):
        return torch.ops.myop.custom_linear(self.weight, x.t(), self.bias).t()


@torch.library.register_fake("myop::custom_linear")
def _(weight, input, bias):
    return weight.new_empty(weight.shape[1], input.shape[1])


from executorch.exir import to_edge
from executorch.runtime import Runtime

model = nn.Sequential(
    nn.Linear(8, 6), nn.ReLU(), nn.Sequential(nn.Linear(6, 5, bias=False), nn.Linear(5, 4))
)
replace_linear_with_custom_linear(model)
assert not any(isinstance(m, nn.Linear) for m in model.modules()), model
x = torch.randn(3, 8)
first, second, third = model[0], model[2][0], model[2][1]
y = torch.relu(x @ first.weight + first.bias) @ second.weight @ third.weight + third.bias
torch.testing.assert_close(model(x), y)
to_edge(torch.export.export(model, (x,))).to_executorch().save("custom.pte")
method = Runtime.get().load_program("custom.pte").load_method("forward")
torch.testing.assert_close(method.execute([x])[0], model(x).detach())
"""


def run(operator: CustomOperator, folder: Path) -> list[Result]:
    """`folder` is emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    results = [_schemas(operator.schemas)]
    cuts = (operator.kernel, *operator.wrapper, *operator.model)
    try:
        _build(operator, folder)
        _run_model(operator, folder)
        status, note = "PASS", ""
    except Failed as e:
        status, note = "FAIL", str(e)
    return results + [Result(c.row, c.seed, status, note or alterations(c)) for c in cuts]


def _schemas(cut: Cut) -> Result:
    """As printed they are no schemas; corrected they are a functional and an out variant."""
    printed, corrected = (
        [line for line in t.split("\n") if line.strip()] for t in (text(cut), code(cut))
    )
    try:
        for line in printed:
            torch._C.parse_schema(f"myop::{line}")
        return Result(cut.row, cut.seed, "FAIL", "torch has learnt Tensor(?): nothing to correct")
    except RuntimeError:
        pass
    schemas = [torch._C.parse_schema(f"myop::{line}") for line in corrected]
    outs = [[a.name for a in s.arguments if a.is_out] for s in schemas]
    good = outs == [[], ["out"]]
    return Result(cut.row, cut.seed, "PASS" if good else "FAIL", alterations(cut))


def _build(operator: CustomOperator, folder: Path) -> None:
    checkout = folder / "executorch"
    checkout.symlink_to(ROOT)
    (folder / "custom_linear.h").write_text(HEADER)
    (folder / "custom_linear.cpp").write_text(code(operator.kernel))
    (folder / "custom_linear_pytorch.cpp").write_text("".join(map(code, operator.wrapper)))
    (folder / "CMakeLists.txt").write_text(CMAKE)
    environment = build_environment(checkout)
    configure = ["cmake", "-B", "cmake-out", f"-DPYTHON_EXECUTABLE={sys.executable}"]
    build = ["cmake", "--build", "cmake-out", "--target", "custom_linear", f"-j{os.cpu_count()}"]
    for command in (configure, build):
        _checked(command, folder, environment)


def _run_model(operator: CustomOperator, folder: Path) -> None:
    loads = any(cut.row == 83 for cut in operator.model)
    load = "" if loads else "torch.ops.load_library('cmake-out/libcustom_linear.so')\n"
    script = BEFORE + load + "".join(map(code, operator.model)) + MODEL
    (folder / "model.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    _checked([sys.executable, "model.py"], folder, environment)


def _checked(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["no output"]
        errors = [line for line in lines if "rror:" in line or "rror at" in line]
        raise Failed(f"{command[0]} {command[1]}: {(errors or lines[-1:])[0].strip()}")
