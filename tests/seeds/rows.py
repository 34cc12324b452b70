"""Which lines of which tutorial text are run, row by row, and everything that is adapted.

Seeds: A LLM page of release 1.0, B LLM manual of 0.4, C LLM page of main, D LLM page of 0.2,
E export tutorial of 0.1. The code is cut out of the text by line numbers at test time; `starts`
guards against another edition. A and E lost their indentation, D that of two blocks: `layout`
gives the level of every line of a cut, one digit each; levels inside brackets are free. Lines that
are added around a cut are spelled out in `before` and `after`, a line that needs a part of the
project that does not exist yet in `awaits`. Nothing else is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SEEDS = {
    "A": "000_41c93761da2dd0bf.txt",
    "B": "001_68d519f92fb0dada.txt",
    "C": "002_310abb35ba36cf0f.txt",
    "D": "003_75ba8476b52e3f1a.txt",
    "E": "004_f801faf4ca022a58.txt",
}


@dataclass(frozen=True)
class Cut:
    row: int
    seed: str
    first: int  # line numbers, from 1, both inclusive
    last: int
    starts: str  # how line `first` starts
    layout: str = ""
    before: str = ""
    after: str = ""
    awaits: tuple[str, str] | None = None  # (line, folder): left out while the folder is not there
    corrects: tuple[tuple[str, str], ...] = ()  # (as printed, as run) where the text is not valid
    note: str = ""  # what else differs from the page
    expects: tuple[str, ...] = ()  # regular expressions found in what it prints


@dataclass(frozen=True)
class Script:
    """Cuts that make one Python file, run by the command the page gives."""

    name: str
    seed: str
    cuts: tuple[Cut, ...]
    command: Cut | None = None  # a line that contains `python FILE`
    program: str = "nanogpt.pte"


@dataclass(frozen=True)
class Project:
    """Cuts that make one C++ project, built and run by the commands the page gives."""

    name: str
    seed: str
    folder: str  # of the project inside the scratch folder
    executorch: str  # where the page has the checkout, relative to the project
    program: str  # the Script whose program it runs
    source: str
    source_cuts: tuple[Cut, ...]
    cmake_cuts: tuple[Cut, ...]
    builds: tuple[tuple[Cut, ...], ...]  # each: configure, build, run
    console: Cut
    prompt_tokens: int = 0  # 0: as many as the prompt has
    n_tokens: int = 30
    files: tuple[Cut, ...] = field(default=())


@dataclass(frozen=True)
class CustomOperator:
    """Cuts that make one custom operator: its library, and the rewrite of a model that uses it."""

    seed: str
    schemas: Cut
    kernel: Cut  # custom_linear.cpp
    wrapper: tuple[Cut, ...]  # custom_linear_pytorch.cpp
    model: tuple[Cut, ...]  # loads the library; replace_linear_with_custom_linear


# The page hands the quantized model to XNNPACK next; it runs on the operators alone as well.
RUN_QUANTIZED = """
quantized = to_edge(traced_model).to_executorch()
from executorch.runtime import Runtime
forward = Runtime.get().load_program(quantized.buffer).load_method("forward")
found, reference = forward.execute(list(example_inputs))[0], m(*example_inputs)[0]
assert (found - reference).abs().max() < 0.05 * reference.abs().max()
assert "quantized_decomposed::choose_qparams" in str(quantized.executorch_program)
"""

DOWNLOADS = (
    Cut(1, "A", 8, 9, "curl"),
    Cut(2, "A", 10, 11, "wget"),
    Cut(1, "B", 98, 99, "curl"),
    Cut(2, "B", 100, 101, "wget"),
    Cut(1, "C", 18, 19, "curl"),
    Cut(2, "C", 24, 25, "wget"),
    Cut(2, "D", 50, 50, "`wget"),
    Cut(2, "D", 127, 127, "wget"),
    Cut(61, "B", 286, 287, "curl -O"),
)

SCRIPTS = (
    Script(
        "export_nanogpt.py",
        "A",
        (
            Cut(3, "A", 20, 52, "# export_nanogpt.py", "0" * 24 + "110000001"),
            Cut(26, "A", 128, 136, "# export_nanogpt.py", "0" * 9),
            Cut(27, "A", 137, 152, "# Use dynamic", "0" * 16, after=RUN_QUANTIZED),
        ),
        Cut(5, "A", 53, 53, "To export, run the script with python export_nanogpt.py"),
    ),
    Script(
        "export_nanogpt.py",
        "B",
        (
            Cut(3, "B", 107, 148, "# export_nanogpt.py"),
            Cut(29, "B", 522, 552, "# export_nanogpt.py", after=RUN_QUANTIZED),
        ),
        Cut(5, "B", 150, 150, "要导出,请使用python export_nanogpt.py"),
    ),
    Script(
        "export_nanogpt.py",
        "C",
        (
            Cut(4, "C", 38, 79, "# export_nanogpt.py"),
            Cut(26, "C", 194, 201, "from executorch.backends.transforms"),
            Cut(28, "C", 205, 225, "# Use dynamic", after=RUN_QUANTIZED),
        ),
        Cut(5, "C", 82, 82, "To export, run the script with `python export_nanogpt.py`"),
    ),
    Script(
        "export.py",
        "D",
        (
            Cut(6, "D", 58, 62, "import torch"),
            Cut(7, "D", 72, 81, "from torch.nn.attention", "0000000101"),
            Cut(8, "D", 87, 91, "from executorch.exir"),
            Cut(9, "D", 112, 114, "#Write the serialized", "001"),
            Cut(30, "D", 291, 320, "from executorch.backends.transforms", after=RUN_QUANTIZED),
        ),
        Cut(10, "D", 119, 119, "`python export.py`"),
    ),
    Script(
        "export_tutorial.py",
        "E",
        (
            Cut(
                11,
                "E",
                23,
                42,
                "import torch",
                "00001223221220000000",
                expects=("Pre-Autograd ATen Dialect Graph", "ATen Dialect Graph", "conv2d"),
            ),
            Cut(
                12,
                "E",
                69,
                81,
                "import traceback as tb",
                "0010000000101",
                expects=(r"tensor\(\[\[2", "Traceback"),
            ),
            Cut(
                13,
                "E",
                85,
                104,
                "from torch.export import dynamic_dim",
                "00100000000000000000",
                expects=("ATen Dialect Graph",),
            ),
            Cut(
                14,
                "E",
                119,
                131,
                "# Works correctly",
                "0000010100101",
                expects=(r"tensor\(\[\[2., 2.\]", "Traceback"),
            ),
            Cut(
                31,
                "E",
                154,
                171,
                "example_args = (torch.randn(1, 3, 256, 256),)",
                "0" * 18,
                expects=(r"Quantized Graph[\s\S]*quantize_per_tensor",),
            ),
            Cut(15, "E", 192, 202, "from executorch.exir import", expects=("Edge Dialect Graph",)),
            Cut(
                16,
                "E",
                209,
                228,
                "def encode(x):",
                "01010000000000000011",
                expects=("Edge Dialect graph of encode", "Edge Dialect graph of decode"),
            ),
            Cut(
                85,
                "E",
                240,
                258,
                "example_args = (torch.randn(1, 3, 256, 256),)",
                "0000000001234323000",
                expects=(r"Transformed Edge Dialect Graph[\s\S]*aten_?\.?sigmoid",),
            ),
            Cut(
                88,
                "E",
                275,
                302,
                "class LowerableModule",
                "01212" + "0" * 9 + "1000100000000" + "1",
                expects=(
                    r"LoweredBackendModule\(\)\nBackendWithCompilerDemo\n"
                    r"b'1version:0#op:demo::aten.sin.default",
                ),
            ),
            Cut(
                89,
                "E",
                314,
                340,
                "class NotLowerableModule",
                "0122120122212222" + "0" * 11,
                expects=(r"executorch_call_delegate\(lowered_module_0", "Lowered Module within"),
            ),
            Cut(
                90,
                "E",
                358,
                377,
                "def f(a, x, b):",
                "0" + "1" * 6 + "0" * 13,
                expects=(r"Delegated program[\s\S]*lowered_module_0[\s\S]*lowered_module_1",),
            ),
            Cut(
                91,
                "E",
                385,
                399,
                "def f(a, x, b):",
                "0" + "1" * 6 + "0" * 8,
                expects=(r"Delegated program[\s\S]*executorch_call_delegate",),
            ),
            Cut(
                86,
                "E",
                407,
                419,
                "from executorch.exir import ExecutorchBackendConfig",
                expects=("ExecuTorch Dialect",),
            ),
            Cut(
                17,
                "E",
                442,
                466,
                "import torch",
                "0000122212" + "0" * 14 + "1",
                after="torch.save((example_args, aten_dialect(*example_args)), 'model.pt')",
            ),
        ),
        None,
        "model.pte",
    ),
)
# Stated in the text of E and checked on what row 86 prints.
FACTS = (Cut(87, "E", 420, 437, "Notice that", expects=(r"aten\.\w+\.\w*out", r"memory[._]alloc")),)

PROJECTS = (
    Project(
        name="release 0.4",
        seed="B",
        folder="et-nanogpt",
        executorch="third-party/executorch",
        program="B",
        source="main.cpp",
        source_cuts=(
            Cut(58, "B", 160, 178, "// main.cpp"),
            Cut(59, "B", 184, 246, "// main.cpp"),
            Cut(60, "B", 258, 282, "// main.cpp"),
        ),
        cmake_cuts=(Cut(66, "B", 297, 326, "# CMakeLists.txt"),),
        builds=(
            (
                Cut(
                    71,
                    "B",
                    349,
                    351,
                    "(mkdir cmake-out",
                    note="without ./install_requirements.sh --clean, see 75",
                ),
            ),
            (Cut(72, "B", 493, 495, "(rm -rf cmake-out"),),
        ),
        console=Cut(74, "B", 359, 360, "Enter model prompt: Hello world!"),
        files=(Cut(78, "B", 330, 344, "  • CMakeLists.txt"),),
    ),
    Project(
        name="release 0.2",
        seed="D",
        folder="nanogpt",
        executorch="../executorch",
        program="D",
        source="nanogpt_runner.cpp",
        source_cuts=(
            Cut(
                64,
                "D",
                159,
                159,
                "#include <executorch/extension/module/module.h>",
                before='#include "basic_sampler.h"\n'
                "#include <executorch/extension/runner_util/managed_tensor.h>",
            ),
            Cut(
                63,
                "D",
                150,
                150,
                '#include  "basic_tokenizer.h"',
                after="using namespace std;\nusing namespace torch::executor;",
            ),
            Cut(65, "D", 173, 194, "vector<int64_t> generate(", after="int main() {"),
            Cut(62, "D", 134, 134, "string  prompt"),
            Cut(63, "D", 151, 151, "BasicTokenizer tokenizer"),
            Cut(64, "D", 160, 160, "Module llm_model"),
            Cut(
                64,
                "D",
                166,
                166,
                "vector<int64_t> tokens",
                after="tokens.resize(8);  // the page reads 8 tokens of a prompt that has 3\n"
                "BasicSampler sampler;",
            ),
            Cut(65, "D", 201, 201, "vector<int64_t> outputs"),
            Cut(
                65, "D", 209, 209, "string out_str", before='cout << "prompt: " << prompt << endl;'
            ),
            Cut(65, "D", 214, 214, "cout <<", after="}"),
        ),
        cmake_cuts=(
            Cut(
                69,
                "D",
                220,
                246,
                "cmake_minimum_required",
                awaits=("    etdump", "executorch/devtools/etdump"),
            ),
        ),
        builds=(
            (
                Cut(73, "D", 254, 257, "(rm -rf cmake-out"),
                Cut(73, "D", 263, 263, "cmake --build cmake-out --target nanogpt_runner"),
                Cut(73, "D", 268, 268, "./cmake-out/nanogpt_runner"),
            ),
        ),
        console=Cut(74, "D", 272, 273, "prompt: Hello world!"),
        prompt_tokens=8,
        n_tokens=20,
    ),
)

# The page leaves the computation out. Its result is [weight.size(1), input.size(1)], so its weight
# and input have the inner dimension first.
CALCULATION = """
  const auto k = weight.size(0), m = weight.size(1), n = input.size(1);
  const float* w = weight.const_data_ptr<float>();
  const float* x = input.const_data_ptr<float>();
  const float* b = bias.has_value() ? bias->const_data_ptr<float>() : nullptr;
  float* y = out.mutable_data_ptr<float>();
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) {
      y[i * n + j] = b == nullptr ? 0 : b[i];
      for (long l = 0; l < k; ++l) y[i * n + j] += w[l * m + i] * x[l * n + j];
    }
"""
_OPTIONAL = ("Tensor(?) bias", "Tensor? bias")
# Without a dispatch key the operator is traced through, and an exporter's tensors have no data.
_FOR_CPU = ('-> Tensor", custom_linear)', '-> Tensor", torch::dispatch(c10::kCPU, custom_linear))')
_KERNEL_BEFORE = '#include "custom_linear.h"'
_WRAPPER_BEFORE = "#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>"

CUSTOM_OPERATORS = (
    CustomOperator(
        "B",
        Cut(79, "B", 786, 788, "custom_linear(Tensor", corrects=(_OPTIONAL,)),
        Cut(
            80,
            "B",
            792,
            801,
            "// custom_linear.h",
            before=_KERNEL_BEFORE,
            corrects=(("// calculation", CALCULATION),),
            note="with the computation",
        ),
        (
            Cut(81, "B", 805, 819, "// custom_linear_pytorch.cpp", before=_WRAPPER_BEFORE),
            Cut(82, "B", 821, 825, "// Register", corrects=(_OPTIONAL, _FOR_CPU)),
        ),
        (Cut(84, "B", 831, 840, "def  replace_linear"),),
    ),
    CustomOperator(
        "D",
        Cut(79, "D", 542, 544, "custom_linear(Tensor", corrects=(_OPTIONAL,)),
        Cut(
            80,
            "D",
            549,
            559,
            "// custom_linear.h",
            before=_KERNEL_BEFORE,
            corrects=(("// calculation", CALCULATION),),
            note="with the computation",
        ),
        (
            Cut(81, "D", 565, 578, "// custom_linear_pytorch.cpp", before=_WRAPPER_BEFORE),
            Cut(82, "D", 580, 586, "// standard API", corrects=(_OPTIONAL, _FOR_CPU)),
        ),
        (
            Cut(
                83,
                "D",
                598,
                599,
                "import torch",
                corrects=(("libcustom_linear.so/dylib", "cmake-out/libcustom_linear.so"),),
            ),
            Cut(
                84,
                "D",
                612,
                621,
                "def  replace_linear",
                "0123444323",
                note="invalid as printed: the else belongs to the if",
            ),
        ),
    ),
)

# Rows that run in a shell alone.
SHELL = (Cut(77, "D", 21, 22, "mkdir  third-party"),)

# Rows nothing is run for, and why.
NOT_RUN: dict[str, tuple[int, ...]] = {
    "not run: clones and installs over the network (conda, pyenv)": (75, 76),
    "later: with the XNNPACK backend": (*range(18, 26), 67, 68, 70),
    "later: with the developer tools": tuple(range(32, 58)),
    "commented out on the page": (92,),
    "no code in the text": (93,),
}
N_ROWS = 93
