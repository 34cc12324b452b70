"""C++ of the tutorials: projects that run what the scripts export."""

from __future__ import annotations

from functools import partial

from tests.seeds.row_types import Cut, Project, Script

SHOW = "print(open('inspector_out.txt').read())"
EVENTS = (
    r"event_block_name .* event_name .* p10 \(ms\) .* p50 \(ms\) .* p90 \(ms\) .* avg \(ms\) .* "
    r"min \(ms\) .* max \(ms\) .* op_types .* is_delegated_op .* delegate_backend_name",
    r"0 │ Default +│ Method::init .*\n.*\n.*1 │ Default +│ Program::load_method ",
    r"│ Execute +│ native_call_embedding\.out ",
)

_SOURCE_B = (
    Cut(58, "B", 160, 178, "// main.cpp"),
    Cut(59, "B", 184, 246, "// main.cpp"),
    Cut(60, "B", 258, 282, "// main.cpp"),
)
_BUILD_B = (Cut(72, "B", 493, 495, "(rm -rf cmake-out"),)
_CONSOLE_B = Cut(74, "B", 503, 504, "Enter model prompt: Hello world!")
_project_b = partial(
    Project,
    seed="B",
    folder="et-nanogpt",
    executorch="third-party/executorch",
    source="main.cpp",
    source_cuts=_SOURCE_B,
    builds=(_BUILD_B,),
    console=_CONSOLE_B,
)

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
_ETDUMP = ("    etdump", "executorch/devtools/etdump")
_CMAKE_XNNPACK_D = (
    Cut(69, "D", 220, 239, "cmake_minimum_required"),
    Cut(70, "D", 341, 348, "add_executable", awaits=_ETDUMP),
)
_project_d = partial(
    Project,
    seed="D",
    folder="nanogpt",
    executorch="../executorch",
    source="nanogpt_runner.cpp",
    source_cuts=_SOURCE_D,
    builds=(_BUILD_D,),
    console=_CONSOLE_D,
    prompt_tokens=8,
    n_tokens=20,
)


def _traced_b(
    seed: str, record: tuple[Cut, ...], options: tuple[Cut, ...], run: Cut, parses: Cut
) -> Project:
    """The project of release 0.4 with the page's lines for an ETDump: include, module, dump."""
    include, module, dump = record
    return _project_b(
        name=f"traced, page {seed}",
        seed=seed,
        program=("B", "portable.pte"),
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
    _project_b(
        name="release 0.4",
        program=("B", "portable.pte"),
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
    _project_b(
        name="release 0.4 with XNNPACK",
        program=("B", "delegated.pte"),
        cmake_cuts=(Cut(67, "B", 436, 465, "cmake_minimum_required"),),
        files=(Cut(78, "B", 471, 483, "  • CMakeLists.txt"),),
    ),
    _project_b(
        name="release 0.4, the shorter list of libraries",
        program=("B", "delegated.pte"),
        cmake_cuts=(
            Cut(67, "B", 436, 454, "cmake_minimum_required"),
            Cut(68, "B", 565, 572, "add_executable"),
        ),
    ),
    _project_d(
        name="release 0.2",
        program=("D", "portable.pte"),
        cmake_cuts=(Cut(69, "D", 220, 246, "cmake_minimum_required", awaits=_ETDUMP),),
    ),
    _project_d(
        name="release 0.2, traced",
        program=("D", "portable.pte"),
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
    _project_b(
        name="release 0.4 with XNNPACK, quantized",
        program=("B", "quantized.pte"),
        cmake_cuts=(Cut(67, "B", 436, 465, "cmake_minimum_required"),),
        takes=("quantized.json",),
    ),
    _project_d(
        name="release 0.2 with XNNPACK, quantized",
        program=("D", "quantized.pte"),
        cmake_cuts=_CMAKE_XNNPACK_D,
        takes=("quantized.json",),
    ),
    _project_d(
        name="release 0.2 with XNNPACK", program=("D", "delegated.pte"), cmake_cuts=_CMAKE_XNNPACK_D
    ),
)
