"""Which lines of which tutorial text are run, row by row, and everything that is adapted.

Seeds: A LLM page of release 1.0, B LLM manual of 0.4, C LLM page of main, D LLM page of 0.2,
E export tutorial of 0.1. The code is cut out of the text by line numbers at test time; `starts`
guards against another edition. A and E lost their indentation, D that of two blocks: `layout`
gives the level of every line of a cut, one digit each; levels inside brackets are free. Lines that
are added around a cut are spelled out in `before` and `after`, a line that needs a part of the
project that does not exist yet in `awaits`. Nothing else is changed; the table says all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
    keeps: str = ""  # the program that is written by then is kept under this name and must be right
    shows: tuple[Cut, ...] = ()  # what the page says that this cut prints


@dataclass(frozen=True)
class Script:
    """Cuts that make one Python file, run by the command the page gives."""

    name: str
    seed: str
    cuts: tuple[Cut, ...]
    commands: tuple[Cut, ...] = ()  # lines that contain `python FILE`
    program: str = "nanogpt.pte"


@dataclass(frozen=True)
class Project:
    """Cuts that make one C++ project, built and run by the commands the page gives."""

    name: str
    seed: str
    folder: str  # of the project inside the scratch folder
    executorch: str  # where the page has the checkout, relative to the project
    program: tuple[str, str]  # the seed of the Script whose program it runs, and which it keeps
    source: str
    source_cuts: tuple[Cut, ...]
    cmake_cuts: tuple[Cut, ...]
    builds: tuple[tuple[Cut, ...], ...]  # each: configure, build, run
    console: Cut
    prompt_tokens: int = 0  # 0: as many as the prompt has
    n_tokens: int = 30
    files: tuple[Cut, ...] = field(default=())
    takes: tuple[str, ...] = ()  # what else the page's export script wrote and is needed beside
    parses: Script | None = None  # reads the dump that the project wrote


@dataclass(frozen=True)
class CustomOperator:
    """Cuts that make one custom operator: its library, and the rewrite of a model that uses it."""

    seed: str
    schemas: Cut
    kernel: Cut  # custom_linear.cpp
    wrapper: tuple[Cut, ...]  # custom_linear_pytorch.cpp
    model: tuple[Cut, ...]  # loads the library; replace_linear_with_custom_linear


COMPARE = """
from executorch.runtime import Runtime
forward = Runtime.get().load_program(quantized.buffer).load_method("forward")
found, reference = forward.execute(list(example_inputs))[0], m(*example_inputs)[0]
assert (found - reference).abs().max() < 0.05 * reference.abs().max()
"""
# The page hands the quantized model to XNNPACK next; it runs on the operators alone as well.
RUN_QUANTIZED = f"""
quantized = to_edge(traced_model).to_executorch()
{COMPARE}
assert "quantized_decomposed::choose_qparams" in str(quantized.executorch_program)
"""
# What the quantized program says to the pages' prompt: the C++ loop has to say the same. Each step
# is compared with the quantized model, which may prefer another token where two are nearly equal.
CONTINUE = """
import json
said = {tokens}
for _ in range({n}):
    context = torch.tensor([said[-{window}:]])
    found, reference = forward.execute([context])[0], m(context)[0]
    assert (found - reference).abs().max() < 0.05 * reference.abs().max()
    said.append(int(found[0, -1].argmax()))
json.dump(said, open("quantized.json", "w"))
with open("quantized.pte", "wb") as file:
    file.write(quantized.buffer)
"""
# Every layer is in a delegate, and the program gives what the quantized model gives.
RUN_LOWERED = f"""
quantized = et_program
{COMPARE}
from executorch.exir.backend.utils import get_delegation_info
outside = get_delegation_info(edge_manager.exported_program().graph_module).left_out
outside = [left.node for left in outside]
assert not [name for name in outside if "linear" in name or "quantize" in name], outside
"""
SAVE = """
with open("nanogpt.pte", "wb") as file:
    file.write(et_program.buffer)
"""

SHOW = "print(open('inspector_out.txt').read())"
EVENTS = (
    r"event_block_name .* event_name .* p10 \(ms\) .* p50 \(ms\) .* p90 \(ms\) .* avg \(ms\) .* "
    r"min \(ms\) .* max \(ms\) .* op_types .* is_delegated_op .* delegate_backend_name",
    r"0 │ Default +│ Method::init .*\n.*\n.*1 │ Default +│ Program::load_method ",
    r"│ Execute +│ native_call_embedding\.out ",
)

SUMMARY = (
    r"Total\s+delegated\s+subgraphs:\s*\d+\s+"
    r"Number\s+of\s+delegated\s+nodes:\s*\d+\s+Number\s+of\s+non-delegated\s+nodes:\s*\d+",
)
TABLE = (  # sorted by name, the total last
    r"op_type\s.*occurrences_in_delegated_graphs\s.*occurrences_in_non_delegated_graphs",
    r"aten_add_tensor[\s\S]*aten_view_copy_default[\s\S]*Total",
)
FRAGMENT = (
    r"%aten_where_self\S* : \[num_users=\d+\] = call_function\["
    r"target=executorch\.exir\.dialects\.edge\._ops\.aten\.where\.self\]",
    r"%lowered_module_1 : \[num_users=1\] = get_attr\[target=lowered_module_1\]",
    r"backend_id: XnnpackBackend\s+lowered graph\(\):\s+%\S+ : \[num_users=\d+\] = placeholder",
    r"return \[",
)


def _counts(printing: Cut, summary: Cut, table: Cut) -> Cut:
    """Prints what was delegated, and what the page shows of it."""
    summary, table = replace(summary, expects=SUMMARY), replace(table, expects=TABLE)
    return replace(printing, shows=(summary, table))


def _graph(printing: Cut, fragment: Cut) -> Cut:
    """Prints the delegated graph, and the part of it that the page shows."""
    return replace(printing, shows=(replace(fragment, expects=FRAGMENT),))


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

# The page prints graphs; here what it made is also run, against what its Python says.
RUN_TRANSFORMED = """
import copy
from executorch.runtime import Runtime
def executed(manager, args):
    buffer = copy.deepcopy(manager).to_executorch().buffer
    return Runtime.get().load_program(buffer).load_method("forward").execute(list(args))[0]
conv = aten_dialect.state_dict
filters = conv["conv.weight"], conv["conv.bias"]
by_hand = torch.nn.functional.conv2d(*example_args, *filters, padding=1)
torch.testing.assert_close(executed(transformed_edge_program, example_args), by_hand.sigmoid())
torch.testing.assert_close(executed(edge_program, example_args), by_hand.relu())
"""
RUN_WHOLE = """
torch.testing.assert_close(lowered_module(*example_args), torch.sin(*example_args))
(plan,) = lowered_module.program().execution_plan
assert [d.id for d in plan.delegates] == ["BackendWithCompilerDemo"], plan.delegates
"""
RUN_COMPOSED = """
a = torch.sin(*example_args)
composed = (a, torch.sin(a), a + torch.sin(a) + 0.3)
torch.testing.assert_close(exported_program.module()(*example_args), composed)
inside = exported_program.graph_module.lowered_module_0
assert inside.processed_bytes == lowered_module.processed_bytes
"""
RUN_PARTS = """
def delegates(program):
    call = torch.ops.higher_order.executorch_call_delegate
    return [node for node in program.graph.nodes if node.target is call]
assert len(delegates(delegated_program)) == 2
torch.testing.assert_close(delegated_program.module()(*example_args), f(*example_args))
"""
RUN_DELEGATED = """
program = delegated_program.exported_program()
assert len(delegates(program)) == 2
torch.testing.assert_close(program.module()(*example_args), f(*example_args))
"""
RUN_PLANNED = """
from executorch.exir import memory
method = Runtime.get().load_program(executorch_program.buffer).load_method("forward")
torch.testing.assert_close(method.execute(list(example_args))[0], f(*example_args))
calls = [n for n in executorch_program.exported_program().graph.nodes if n.op == "call_function"]
for call in calls:
    if call.target is not memory.alloc:
        outs = [a.name for a in call.target._schema.arguments if a.is_out]
        assert outs and all(call.kwargs[o].target is memory.alloc for o in outs), call.format_node()
print("every operator writes to an allocation")
"""

_ANY_LENGTH = tuple(
    (f"{call})", f"{call}, dynamic_shapes=dynamic_shape)")
    for call in ("export_for_training(model, example_inputs", "= export(m, example_inputs")
)

SCRIPTS = (
    Script(
        "export_nanogpt.py",
        "A",
        (
            Cut(
                3,
                "A",
                20,
                52,
                "# export_nanogpt.py",
                "0" * 24 + "110000001",
                keeps="portable.pte",
            ),
            Cut(18, "A", 76, 114, "# export_nanogpt.py", "0" * 31 + "11" + "0" * 6),
            _counts(
                Cut(32, "A", 177, 184, "from executorch.devtools.backend_debug", "0" * 8),
                Cut(33, "A", 186, 188, "Total delegated"),
                Cut(34, "A", 189, 221, "op_type"),
            ),
            _graph(
                Cut(37, "A", 227, 229, "from executorch.exir.backend.utils", "000"),
                Cut(38, "A", 232, 244, "%aten_where"),
            ),
            Cut(41, "A", 260, 264, "# export_nanogpt.py", "00000"),
            Cut(18, "A", 115, 118, "et_program", "0001", keeps="delegated.pte"),
            Cut(41, "A", 265, 268, "# ...", "0000"),
            Cut(26, "A", 128, 136, "# export_nanogpt.py", "0" * 9),
            Cut(27, "A", 137, 152, "# Use dynamic", "0" * 16, after=RUN_QUANTIZED),
            Cut(22, "A", 157, 165, "from executorch", "010000001", after=RUN_LOWERED),
        ),
        (Cut(5, "A", 53, 53, "To export, run the script with python export_nanogpt.py"),),
    ),
    Script(
        "export_nanogpt.py",
        "B",
        (
            Cut(3, "B", 107, 148, "# export_nanogpt.py", keeps="portable.pte"),
            Cut(
                41,
                "B",
                690,
                696,
                "# export_nanogpt.py",
                before="edge_manager = to_edge(traced_model, compile_config=edge_config)",
            ),
            Cut(41, "B", 698, 701, "# ...", before="et_program = edge_manager.to_executorch()"),
            Cut(20, "B", 378, 426, "# export_nanogpt.py"),
            _counts(
                Cut(32, "B", 584, 592, "from executorch.devtools.backend_debug"),
                Cut(33, "B", 596, 598, "Total  delegated"),
                Cut(34, "B", 600, 652, "op_type"),
            ),
            _graph(
                Cut(37, "B", 656, 658, "from executorch.exir.backend.utils"),
                Cut(38, "B", 664, 676, "%aten_where"),
            ),
            Cut(20, "B", 427, 432, "et_program", keeps="delegated.pte"),
            Cut(
                29,
                "B",
                522,
                552,
                "# export_nanogpt.py",
                after=RUN_QUANTIZED,
                corrects=_ANY_LENGTH,
                note="for its own loop, which begins with 3 tokens, not 63",
            ),
            Cut(
                23,
                "B",
                556,
                561,
                "from executorch",
                after=RUN_LOWERED + CONTINUE.format(tokens=[1, 2, 3], n=30, window=63),
            ),
        ),
        (
            Cut(5, "B", 150, 150, "要导出,请使用python export_nanogpt.py"),
            Cut(25, "B", 487, 487, "python export_nanogpt.py"),
        ),
    ),
    Script(
        "export_nanogpt.py",
        "C",
        (
            Cut(4, "C", 38, 79, "# export_nanogpt.py", keeps="portable.pte"),
            Cut(19, "C", 116, 163, "# export_nanogpt.py"),
            _counts(
                Cut(32, "C", 260, 268, "from executorch.devtools.backend_debug"),
                Cut(33, "C", 273, 275, "Total  delegated"),
                Cut(34, "C", 279, 288, "|    |  op_type"),
            ),
            _graph(
                Cut(37, "C", 294, 296, "from executorch.exir.backend.utils"),
                Cut(38, "C", 304, 316, "%aten_where"),
            ),
            Cut(41, "C", 328, 334, "# export_nanogpt.py"),
            Cut(19, "C", 164, 168, "et_program", keeps="delegated.pte"),
            Cut(41, "C", 336, 339, "# ..."),
            Cut(26, "C", 194, 201, "from executorch.backends.transforms"),
            Cut(28, "C", 205, 225, "# Use dynamic", after=RUN_QUANTIZED),
            Cut(22, "C", 232, 234, "from executorch"),
            Cut(22, "C", 238, 244, "edge_config =", after=RUN_LOWERED),
        ),
        (Cut(5, "C", 82, 82, "To export, run the script with `python export_nanogpt.py`"),),
    ),
    Script(
        "export.py",
        "D",
        (
            Cut(6, "D", 58, 62, "import torch"),
            Cut(7, "D", 72, 81, "from torch.nn.attention", "0000000101"),
            Cut(8, "D", 87, 91, "from executorch.exir"),
            Cut(9, "D", 112, 114, "#Write the serialized", "001", keeps="portable.pte"),
            Cut(
                42,
                "D",
                442,
                445,
                "import copy",
                before="from executorch.sdk import generate_etrecord\n"
                "edge_program_manager = to_edge(traced_model, compile_config=edge_config)",
            ),
            Cut(
                42,
                "D",
                447,
                450,
                "# ...",
                before="et_program_manager = edge_program_manager.to_executorch()",
            ),
            Cut(21, "D", 98, 106, "from executorch", after=SAVE, keeps="delegated.pte"),
            Cut(30, "D", 291, 320, "from executorch.backends.transforms", after=RUN_QUANTIZED),
            Cut(24, "D", 327, 334, "from executorch"),
            _counts(
                Cut(35, "D", 360, 367, "from executorch.exir.backend.utils"),
                Cut(36, "D", 373, 375, "Total  delegated"),
                Cut(36, "D", 379, 407, "|    |  op_type"),
            ),
            Cut(
                39,
                "D",
                419,
                421,
                "from executorch.exir.backend.utils",
                before="class self:\n    edge_manager = edge_manager",
                expects=(r"lowered graph\(\):",),
            ),
            Cut(
                24,
                "D",
                336,
                336,
                "et_program",
                after=RUN_LOWERED
                + CONTINUE.format(tokens=[1, 2, 3, 0, 0, 0, 0, 0], n=20, window=8),
            ),
        ),
        (Cut(10, "D", 119, 119, "`python export.py`"),),
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
                shows=(
                    Cut(40, "E", 38, 39, "print(", expects=(r"Pre-Autograd ATen.*\s+GraphModule",)),
                    Cut(
                        40, "E", 41, 42, "print(", expects=(r"\nATen Dialect Graph\s+ExportedPro",)
                    ),
                ),
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
            Cut(
                15,
                "E",
                192,
                202,
                "from executorch.exir import",
                shows=(
                    Cut(
                        40, "E", 201, 202, "print(", expects=(r"Edge Dialect Graph\s+ExportedPro",)
                    ),
                ),
            ),
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
                after=RUN_TRANSFORMED,
                shows=(
                    Cut(
                        40,
                        "E",
                        257,
                        258,
                        "print(",
                        expects=(r"Transformed Edge Dialect Graph\s+E",),
                    ),
                ),
            ),
            Cut(
                88,
                "E",
                275,
                302,
                "class LowerableModule",
                "01212" + "0" * 9 + "1000100000000" + "1",
                after=RUN_WHOLE,
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
                after=RUN_COMPOSED,
            ),
            Cut(
                90,
                "E",
                358,
                377,
                "def f(a, x, b):",
                "0" + "1" * 6 + "0" * 13,
                after=RUN_PARTS,
            ),
            Cut(
                91,
                "E",
                385,
                399,
                "def f(a, x, b):",
                "0" + "1" * 6 + "0" * 8,
                after=RUN_DELEGATED,
                shows=(
                    Cut(
                        40, "E", 398, 399, "print(", expects=(r"Delegated program\s+ExportedProg",)
                    ),
                ),
            ),
            Cut(
                86,
                "E",
                407,
                419,
                "from executorch.exir import ExecutorchBackendConfig",
                after=RUN_PLANNED,
                shows=(
                    Cut(
                        40, "E", 417, 418, "print(", expects=(r"ExecuTorch Dialect\s+ExportedProg",)
                    ),
                    Cut(
                        87,
                        "E",
                        420,
                        437,
                        "Notice that",
                        expects=("every operator writes to an allocation",),
                    ),
                ),
            ),
            Cut(
                17,
                "E",
                442,
                466,
                "import torch",
                "0000122212" + "0" * 14 + "1",
                after="torch.save((example_args, aten_dialect(*example_args)), 'model.pt')",
                keeps="model.pte",
            ),
        ),
        (),
        "model.pte",
    ),
)

_SOURCE_B = (
    Cut(58, "B", 160, 178, "// main.cpp"),
    Cut(59, "B", 184, 246, "// main.cpp"),
    Cut(60, "B", 258, 282, "// main.cpp"),
)
_BUILD_B = (Cut(72, "B", 493, 495, "(rm -rf cmake-out"),)
_CONSOLE_B = Cut(74, "B", 503, 504, "Enter model prompt: Hello world!")

_SOURCE_D = (
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
    Cut(65, "D", 209, 209, "string out_str", before='cout << "prompt: " << prompt << endl;'),
    Cut(65, "D", 214, 214, "cout <<", after="}"),
)
_BUILD_D = (
    Cut(73, "D", 254, 257, "(rm -rf cmake-out"),
    Cut(73, "D", 263, 263, "cmake --build cmake-out --target nanogpt_runner"),
    Cut(73, "D", 268, 268, "./cmake-out/nanogpt_runner"),
)
_CONSOLE_D = Cut(74, "D", 272, 273, "prompt: Hello world!")


def _traced_b(
    seed: str, record: tuple[Cut, ...], options: tuple[Cut, ...], run: Cut, parses: Cut
) -> Project:
    """The project of release 0.4 with the page's lines for an ETDump: include, module, dump."""
    include, module, dump = record
    return Project(
        name=f"traced, page {seed}",
        seed=seed,
        folder="et-nanogpt",
        executorch="third-party/executorch",
        program=("B", "portable.pte"),
        source="main.cpp",
        source_cuts=(
            Cut(58, "B", 160, 178, "// main.cpp"),
            include,
            Cut(59, "B", 184, 246, "// main.cpp"),
            Cut(60, "B", 258, 274, "// main.cpp"),
            module,
            Cut(60, "B", 277, 281, "  const auto max_input_tokens"),
            dump,
        ),
        cmake_cuts=(
            Cut(66, "B", 297, 310, "# CMakeLists.txt"),
            options[0],
            Cut(66, "B", 312, 326, "# Include the executorch"),
            *options[1:],
        ),
        builds=((run,),),
        console=Cut(74, "B", 359, 360, "Enter model prompt: Hello world!"),
        files=(Cut(57, "D", 497, 497, "Run the runner, you will see"),),
        parses=Script("inspect_nanogpt.py", seed, (parses,)),
    )


_OTHERS = ("# ... omit existing ones", "nanogpt_runner PRIVATE")

PROJECTS = (
    Project(
        name="release 0.4",
        seed="B",
        folder="et-nanogpt",
        executorch="third-party/executorch",
        program=("B", "portable.pte"),
        source="main.cpp",
        source_cuts=_SOURCE_B,
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
            _BUILD_B,
        ),
        console=Cut(74, "B", 359, 360, "Enter model prompt: Hello world!"),
        files=(Cut(78, "B", 330, 344, "  • CMakeLists.txt"),),
    ),
    Project(
        name="release 0.4 with XNNPACK",
        seed="B",
        folder="et-nanogpt",
        executorch="third-party/executorch",
        program=("B", "delegated.pte"),
        source="main.cpp",
        source_cuts=_SOURCE_B,
        cmake_cuts=(Cut(67, "B", 436, 465, "cmake_minimum_required"),),
        builds=(_BUILD_B,),
        console=_CONSOLE_B,
        files=(Cut(78, "B", 471, 483, "  • CMakeLists.txt"),),
    ),
    Project(
        name="release 0.4, the shorter list of libraries",
        seed="B",
        folder="et-nanogpt",
        executorch="third-party/executorch",
        program=("B", "delegated.pte"),
        source="main.cpp",
        source_cuts=_SOURCE_B,
        cmake_cuts=(
            Cut(67, "B", 436, 454, "cmake_minimum_required"),
            Cut(68, "B", 565, 572, "add_executable"),
        ),
        builds=(_BUILD_B,),
        console=_CONSOLE_B,
    ),
    Project(
        name="release 0.2",
        seed="D",
        folder="nanogpt",
        executorch="../executorch",
        program=("D", "portable.pte"),
        source="nanogpt_runner.cpp",
        source_cuts=_SOURCE_D,
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
        builds=(_BUILD_D,),
        console=_CONSOLE_D,
        prompt_tokens=8,
        n_tokens=20,
    ),
    Project(
        name="release 0.2, traced",
        seed="D",
        folder="nanogpt",
        executorch="../executorch",
        program=("D", "portable.pte"),
        source="nanogpt_runner.cpp",
        source_cuts=(
            Cut(45, "D", 465, 465, "#include  <executorch/sdk/etdump/etdump_flatcc.h>"),
            *_SOURCE_D[:5],
            Cut(47, "D", 470, 471, "std::unique_ptr<torch::executor::ETDumpGen>"),
            *_SOURCE_D[6:9],
            Cut(64, "D", 214, 214, "cout <<"),
            Cut(49, "D", 476, 488, "torch::executor::ETDumpGen* etdump_gen", after="}"),
        ),
        cmake_cuts=(
            Cut(69, "D", 220, 246, "cmake_minimum_required"),
            Cut(51, "D", 494, 495, "target_compile_options(executorch PUBLIC"),
        ),
        builds=(_BUILD_D,),
        console=_CONSOLE_D,
        prompt_tokens=8,
        n_tokens=20,
        files=(Cut(57, "D", 497, 497, "Run the runner, you will see"),),
        takes=("etrecord.bin",),
        parses=Script(
            "inspect_nanogpt.py",
            "D",
            (
                Cut(54, "D", 505, 508, "from executorch.sdk import Inspector"),
                Cut(
                    55,
                    "D",
                    513,
                    514,
                    "with  open",
                    after=SHOW,
                    shows=(Cut(56, "D", 518, 524, "|  |  event_block_name", expects=EVENTS),),
                ),
            ),
        ),
    ),
    _traced_b(
        "B",
        (
            Cut(
                44,
                "B",
                713,
                713,
                "#include <executorch/devtools/etdump/etdump_flatcc.h>",
                after="using executorch::etdump::ETDumpGen;\nusing torch::executor::etdump_result;",
                note="with the using lines of page A",
            ),
            Cut(46, "B", 717, 718, "std::unique_ptr<ETDumpGen>"),
            Cut(48, "B", 722, 732, "ETDumpGen* etdump_gen", after="}"),
        ),
        (
            Cut(50, "B", 736, 737, "option(EXECUTORCH_ENABLE_EVENT_TRACER"),
            Cut(50, "B", 741, 746, "target_link_libraries(", corrects=(_OTHERS,)),
        ),
        Cut(52, "B", 750, 752, "(rm -rf cmake-out"),
        Cut(53, "B", 758, 764, "from", after=SHOW, expects=EVENTS),
    ),
    _traced_b(
        "A",
        (
            Cut(43, "A", 275, 277, "#include <executorch/devtools/etdump/etdump_flatcc.h>"),
            Cut(46, "A", 279, 280, "std::unique_ptr<ETDumpGen>"),
            Cut(48, "A", 284, 293, "ETDumpGen* etdump_gen", after="}"),
        ),
        (
            Cut(50, "A", 295, 296, "option(EXECUTORCH_ENABLE_EVENT_TRACER"),
            Cut(50, "A", 298, 302, "target_link_libraries(", corrects=(_OTHERS,)),
        ),
        Cut(52, "A", 304, 306, "(rm -rf cmake-out"),
        Cut(53, "A", 309, 313, "from", "00001", after=SHOW, expects=EVENTS),
    ),
    Project(
        name="release 0.4 with XNNPACK, quantized",
        seed="B",
        folder="et-nanogpt",
        executorch="third-party/executorch",
        program=("B", "quantized.pte"),
        source="main.cpp",
        source_cuts=_SOURCE_B,
        cmake_cuts=(Cut(67, "B", 436, 465, "cmake_minimum_required"),),
        builds=(_BUILD_B,),
        console=_CONSOLE_B,
        takes=("quantized.json",),
    ),
    Project(
        name="release 0.2 with XNNPACK, quantized",
        seed="D",
        folder="nanogpt",
        executorch="../executorch",
        program=("D", "quantized.pte"),
        source="nanogpt_runner.cpp",
        source_cuts=_SOURCE_D,
        cmake_cuts=(
            Cut(69, "D", 220, 239, "cmake_minimum_required"),
            Cut(
                70,
                "D",
                341,
                348,
                "add_executable",
                awaits=("    etdump", "executorch/devtools/etdump"),
            ),
        ),
        builds=(_BUILD_D,),
        console=_CONSOLE_D,
        prompt_tokens=8,
        n_tokens=20,
        takes=("quantized.json",),
    ),
    Project(
        name="release 0.2 with XNNPACK",
        seed="D",
        folder="nanogpt",
        executorch="../executorch",
        program=("D", "delegated.pte"),
        source="nanogpt_runner.cpp",
        source_cuts=_SOURCE_D,
        cmake_cuts=(
            Cut(69, "D", 220, 239, "cmake_minimum_required"),
            Cut(
                70,
                "D",
                341,
                348,
                "add_executable",
                awaits=("    etdump", "executorch/devtools/etdump"),
            ),
        ),
        builds=(_BUILD_D,),
        console=_CONSOLE_D,
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
    "not run: downloads; local copies of the same interfaces stand in": (1, 2, 61),
    "not run: clones and installs over the network (conda, pyenv)": (75, 76),
    "commented out on the page": (92,),
    "no code in the text": (93,),
}
N_ROWS = 93
