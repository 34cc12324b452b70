"""Check that the code that runs programs reports errors as values.

python tools/check_aborts.py    # prints what is not allowed, exit 1

It must not abort, throw exceptions, use thread-local variables or allocate from the heap. The code
around it, in extension/ and devtools/, may throw and allocate, but must not abort, or take a value
out of a Result that may be an error. Comments and strings are not checked. ALLOWED lists the
exceptions, with their reasons.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "executorch"
ROOMS = ("runtime", "cpu", "kernels", "backends/xnnpack/runtime", "backends/example/runtime")
# Rooms that load programs and call the runtime; only these rules apply to them.
AROUND = ("devtools", "extension")
AROUND_RULES = ("abort", "unchecked result")
# Tests, benchmarks and sources that only these link.
SKIPPED = re.compile(
    r"_test\.|_bench|testing_util|/testing/|_test_|payload_(builder|mutation)|run_on_anything|guarded_memory|conv_testing"
)

FALLIBLE = (
    "get_method_name|(?:input|output|attribute)_(?:tag|tensor_meta)|memory_planned_buffer_\\w+"
    "|get_num_keys|get_key|get_tensor_layout|get_data|get_backend_name|method_meta|method"
)

RULES = {
    "abort": re.compile(
        r"\b(?:ET_D?CHECK(?:_MSG|_SAME\w+|_CONTIGUOUS|_VALID\w+|_NON_ZERO\w+|_DEFAULT\w+)?"
        r"|ET_ASSERT\w+|ET_EXTRACT_SCALAR_TENSOR|HWY_D?ASSERT|HWY_ABORT|assert|abort"
        r"|runtime_abort|pal_abort|terminate|exit)\s*\("
    ),
    # tryX() and queries of a program by index or name return a Result, whose value may be taken
    # only after ok().
    "unchecked result": re.compile(
        rf"(?<![\w)\]])\*\s*[\w.\->:]*\btry[A-Z]\w*\s*\([^;]*\)\s*;"
        rf"|\b(?:{FALLIBLE})\s*\([^()]*\)\s*(?:\.get\(\)|->)"
        rf"|(?<![\w)\]])\*\s*(?:\(\*\w+\)|[\w.\->]|\(\))*\b(?:{FALLIBLE})\s*\([^()]*\)"
    ),
    "exception": re.compile(r"\bthrow\b|\bdynamic_cast\b"),
    "thread_local": re.compile(r"\bthread_local\b"),
    "container": re.compile(
        r"\bstd::(?:vector|basic_string|string|map|set|multimap|unordered_\w+|deque|list|function"
        r"|make_unique|make_shared|shared_ptr)\b|\bnew\s+(?!\()[\w:]|\b(?:std::)?(?:malloc|calloc)\s*\("
    ),
}

ANY = 1 << 30
CONTRACT = "user code with a wrong index or type; paths from a file use try...() or check first"
COUNTED = "asked for by a number below the count, or by a name that was found before"
LOAD = "built when a method is loaded; compiled with exceptions, which its entries turn into errors"

# (path under executorch/, a file or folder; rule): how many places at most, and why.
ALLOWED: dict[tuple[str, str], tuple[int, str]] = {
    ("runtime/platform", "abort"): (28, "defines the checks, and how a platform aborts"),
    ("runtime/platform/default", "container"): (2, "the platform's heap"),
    ("runtime/core/array_ref.h", "abort"): (2, CONTRACT),
    ("runtime/core/span.h", "abort"): (1, CONTRACT),
    ("runtime/core/result.cpp", "abort"): (1, CONTRACT),
    ("runtime/core/evalue.h", "abort"): (2, CONTRACT),
    ("runtime/core/evalue.h", "unchecked result"): (1, CONTRACT),
    ("runtime/core/evalue.cpp", "abort"): (2, CONTRACT),
    ("runtime/core/evalue.cpp", "unchecked result"): (1, CONTRACT),
    ("runtime/core/freeable_buffer.cpp", "abort"): (1, CONTRACT),
    ("runtime/core/memory_allocator.cpp", "abort"): (1, CONTRACT),
    ("runtime/core/hierarchical_allocator.cpp", "abort"): (1, CONTRACT),
    ("runtime/executor/method_delegates.cpp", "unchecked result"): (2, COUNTED),
    ("runtime/executor/method_io.cpp", "unchecked result"): (1, COUNTED),
    ("runtime/core/device_allocator.cpp", "abort"): (3, "registration at start-up"),
    ("runtime/core/portable_type/scalar.h", "abort"): (2, CONTRACT),
    ("runtime/core/portable_type/tensor_impl.cpp", "abort"): (4, CONTRACT),
    ("runtime/core/exec_aten/util/scalar_type_util.h", "abort"): (1, CONTRACT),
    ("runtime/core/exec_aten/util/scalar_type_util.cpp", "abort"): (1, CONTRACT),
    ("runtime/core/exec_aten/util/tensor_util.cpp", "abort"): (2, CONTRACT),
    ("runtime/core/exec_aten/util/tensor_util.h", "abort"): (29, "macros for users' kernels"),
    ("runtime/executor/memory_manager.h", "abort"): (1, CONTRACT),
    ("runtime/executor/method_io.cpp", "abort"): (2, CONTRACT),
    ("runtime/kernel/operator_registry.h", "abort"): (1, CONTRACT),
    ("runtime/kernel/thread_parallel_interface.cpp", "thread_local"): (1, "a number"),
    ("cpu/threadpool.cpp", "thread_local"): (4, "which pool the thread belongs to"),
    ("cpu/machine_limits.cpp", "container"): (4, "measures the machine for the profiler"),
    ("cpu/nn/testing.h", "container"): (4, "tests"),
    ("cpu/testing.h", "container"): (1, "tests"),
    ("cpu/nn/int8_conv.h", "container"): (1, LOAD),
    ("cpu/team.cpp", "container"): (2, "made once, with the first loop"),
    ("cpu/threadpool.cpp", "container"): (2, "made once, with the first loop"),
    ("kernels/list_operators.cpp", "container"): (3, "a tool of the build"),
    ("kernels/optimized", "container"): (ANY, LOAD),
    ("kernels/optimized/effort.h", "exception"): (1, LOAD),
    ("backends", "container"): (ANY, LOAD),
    ("backends/xnnpack/runtime", "exception"): (2, LOAD),
    ("extension/command/command_line.cpp", "abort"): (
        2,
        "CLI11's exit(), which returns",
    ),
    ("extension/command/loaded_program.cpp", "unchecked result"): (1, COUNTED),
    ("extension/executor_runner/main.cpp", "abort"): (
        1,
        "CLI11's exit(), which returns",
    ),
    ("extension/executor_runner/main.cpp", "unchecked result"): (2, COUNTED),
    ("extension/llm/tokenizers/result.h", "abort"): (1, CONTRACT),
    ("extension/pybindings/program.cpp", "unchecked result"): (3, COUNTED),
    ("extension/pybindings/shared_state.cpp", "unchecked result"): (1, COUNTED),
    ("extension/runner_util", "abort"): (3, CONTRACT),
    ("extension/tensor", "abort"): (25, CONTRACT),
}

NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)


def code(text: str) -> str:
    """`text` without comments and texts; line numbers stay."""
    return NOISE.sub(lambda m: "\n" * m.group().count("\n"), text)


def found() -> Iterator[tuple[str, int, str, str]]:
    """Path, line, rule and text of every place that a rule finds."""
    for room in ROOMS + AROUND:
        for source in sorted((SOURCES / room).rglob("*")):
            path = source.relative_to(SOURCES).as_posix()
            if source.suffix not in (".h", ".cpp") or SKIPPED.search(path):
                continue
            text = code(source.read_text(encoding="utf-8"))
            for rule in RULES if room in ROOMS else AROUND_RULES:
                for match in RULES[rule].finditer(text):
                    line = text.count("\n", 0, match.start()) + 1
                    yield path, line, rule, match.group().strip()


def covering(path: str, rule: str) -> tuple[str, str] | None:
    """The first entry of ALLOWED for `rule` in `path`."""
    for entry in ALLOWED:
        if entry[1] == rule and (path == entry[0] or path.startswith(entry[0] + "/")):
            return entry
    return None


def main() -> int:
    places: dict[tuple[str, str], list[str]] = {}
    bad = []
    for path, line, rule, text in found():
        place = f"executorch/{path}:{line}: {rule}: {text}"
        entry = covering(path, rule)
        if entry is None:
            bad.append(f"{place}; what runs a program returns an error instead")
        else:
            places.setdefault(entry, []).append(place)
    for entry, there in places.items():
        most, why = ALLOWED[entry]
        if len(there) > most:
            bad += [*there, f"  {len(there)} of these, {most} are allowed: {why}"]
    print("\n".join(bad) or "aborts: whatever runs a program returns errors")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
