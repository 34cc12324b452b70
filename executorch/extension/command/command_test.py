"""The `executorch` command on a program exported here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.export import Dim, export

import executorch
from executorch.exir import to_edge
from tests.browser import Browser, needs_chromium
from tests.built import COMMAND, needs

pytestmark = needs(COMMAND)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 256)
        self.second = torch.nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.second(torch.nn.functional.gelu(self.first(x))), dim=-1)


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(COMMAND), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def output_of(*arguments: object) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def program(net: Net, tmp_path_factory: pytest.TempPathFactory) -> Path:
    dynamic = {"x": {0: Dim("batch", min=1, max=32)}}
    exported = export(net, (torch.randn(8, 64),), dynamic_shapes=dynamic, strict=True)
    path = tmp_path_factory.mktemp("command") / "net.pte"
    with path.open("wb") as file:
        to_edge(exported).to_executorch().write_to_file(file)
    return path


def test_run_computes_what_eager_does(net: Net, program: Path, tmp_path: Path) -> None:
    x = torch.randn(5, 64)
    np.save(tmp_path / "x.npy", x.numpy())
    output_of("run", program, "--inputs", tmp_path / "x.npy", "--output", tmp_path / "y")
    y = torch.from_numpy(np.load(tmp_path / "y-0.npy"))
    torch.testing.assert_close(y, net(x))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("verb", ["inspect", "run", "memory", "completions"])
def test_output_that_cannot_be_written_is_an_error(program: Path, verb: str) -> None:
    words = [verb, "bash"] if verb == "completions" else [verb, program]
    with open("/dev/full", "w") as full:
        command = [str(COMMAND), *map(str, words)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert "cannot write to the standard output" in done.stderr


def test_profile_adds_up_and_names_modules(program: Path) -> None:
    profile = json.loads(output_of("profile", program, "--shape", "3x64", "--json", "--runs", 8))
    rows = profile["instructions"]
    assert sum(row["seconds"] for row in rows) >= 0.98 * profile["seconds"]
    assert profile["coverage"] >= 0.98
    assert profile["lost_events"] == 0
    products = [row for row in rows if row["family"] == "matmul"]
    assert {row["module"] for row in products} == {"first", "second"}
    assert all(re.fullmatch(r".*command_test\.py:\d+", row["place"]) for row in products)
    # Two operations for each weight and row; bias, gelu and what else is fused come on top.
    weights = 2 * 64 * 256
    flop = sum(row["flop"] for row in products)
    assert 2 * 3 * weights <= flop <= 2.2 * 3 * weights
    least_bytes = 4 * weights
    assert least_bytes <= sum(row["bytes"] for row in products) <= 1.2 * least_bytes


def test_profile_looks_inside_delegates(net: Net, tmp_path: Path) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    exported = export(net, (torch.randn(8, 64),))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    path = tmp_path / "net.pte"
    path.write_bytes(lowered.to_executorch().buffer)
    profile = json.loads(output_of("profile", path, "--json", "--runs", 8))
    (call,) = profile["instructions"]
    layers = [n for n in call["nodes"] if n["family"] == "matmul"]
    assert [n["flop"] for n in layers] == 2 * [2 * 8 * 64 * 256]
    assert [n["module"] for n in layers] == ["first", "second"]
    assert all(n["roofline_seconds"] > 0 for n in layers)
    assert call["flop"] == sum(n["flop"] for n in call["nodes"])
    assert sum(n["seconds"] for n in call["nodes"]) >= 0.98 * call["seconds"]
    assert {"first", "second"} <= {m["name"] for m in profile["modules"]}
    assert not any("int8" in n for n in call["nodes"])


def test_profile_knows_products_of_bytes(net: Net, tmp_path: Path) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.exir import to_edge_transform_and_lower

    inputs = (torch.randn(8, 64),)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    prepared = prepare_pt2e(export(net, inputs).module(), XNNPACKQuantizer().set_global(config))
    prepared(*inputs)
    exported = export(convert_pt2e(prepared), inputs)
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    path = tmp_path / "net.pte"
    path.write_bytes(lowered.to_executorch().buffer)
    profile = json.loads(output_of("profile", path, "--json", "--runs", 8))
    machine = profile["machine"]
    nodes = [n for row in profile["instructions"] for n in row.get("nodes", [])]
    layers = [n for n in nodes if n["family"] == "matmul"]
    assert len(layers) == 2
    for layer in layers:
        assert layer["int8"]
        reads = layer["bytes"] / machine["bytes_per_second"]
        least = max(reads, layer["flop"] / machine["int8_per_second"])
        assert layer["roofline_seconds"] == pytest.approx(least)
    text = output_of("profile", path, "--runs", 8)
    assert re.search(r"multiplies and adds [\d.]+ GFLOP/s, of bytes [\d.]+\n", text)


def test_trace_is_in_the_trace_event_format(program: Path, tmp_path: Path) -> None:
    output_of("profile", program, "--runs", 5, "--trace", tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    method, *instructions = slices
    assert method["name"] == "forward"
    assert instructions
    last = 0.0
    for event in instructions:
        assert event["ts"] >= last - 1e-6
        last = event["ts"] + event["dur"]
    assert last <= method["ts"] + method["dur"] + 1e-6


def test_text_shows_rates_and_losses(program: Path) -> None:
    text = output_of("profile", program, "--runs", 5, "--overhead")
    for part in ("by operator", "by module", "largest losses", "of the method's wall time"):
        assert part in text
    assert "profiling costs" in text


def test_report_is_one_page_without_network(program: Path, tmp_path: Path) -> None:
    output_of("report", program, "--runs", 5, "--output", tmp_path / "net.html")
    page = (tmp_path / "net.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == page.count("</svg>") >= 3
    links = set(re.findall(r"https?://[^'\"\s<>]+", page))
    assert links == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "nan" not in re.sub(r"<script>.*</script>", "", page, flags=re.S).split()


@needs_chromium
def test_report_works_in_a_browser(program: Path, tmp_path: Path) -> None:
    output_of("report", program, "--runs", 5, "--output", tmp_path / "net.html")
    with Browser(tmp_path / "browser") as browser:
        page = browser.open((tmp_path / "net.html").as_uri())
        page.wait_for("document.querySelector('#instructions td') !== null")
        # A click on the head of the column of names sorts by it, another turns the order.
        orders = [
            page.value(
                "document.querySelectorAll('#instructions th')[1].click(),"
                "[...document.querySelectorAll('#instructions tr:has(td)')]"
                "    .map(row => row.cells[1].textContent)"
            )
            for _ in range(2)
        ]
        assert len(orders[0]) > 2
        assert sorted(orders) == sorted([sorted(orders[0]), sorted(orders[0], reverse=True)])
        # Every picture and table is as wide as the page lets it be, and none is empty.
        assert page.value(
            "[...document.querySelectorAll('svg, table')].every(it => it.clientHeight > 20 &&"
            "    it.closest('body').scrollWidth <= innerWidth)"
        )


def test_memory_is_told_in_text_json_and_picture(program: Path, tmp_path: Path) -> None:
    svg = tmp_path / "plan.svg"
    plan = json.loads(output_of("memory", program, "--json", "--svg", svg))
    (arena,) = plan["arenas"]
    assert 0 < arena["peak_bytes"] <= arena["bytes"]
    assert len(arena["without"]) == min(5, len(arena["tensors"]))
    ends = [tensor["offset"] + tensor["bytes"] for tensor in arena["tensors"]]
    assert max(ends) <= arena["bytes"]
    assert svg.read_text().startswith("<svg")
    assert f"arena {arena['id']}: {arena['bytes']} bytes" in output_of("memory", program)


def test_strip_removes_places_and_nothing_else(program: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.pte"
    assert "less than before" in output_of("strip", program, "--output", small)
    assert small.stat().st_size < program.stat().st_size
    assert output_of("diff", program, small) == ""
    x = tmp_path / "x.npy"
    np.save(x, np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32))
    for which, path in (("a", program), ("b", small)):
        output_of("run", path, "--inputs", x, "--output", tmp_path / which)
    assert (tmp_path / "a-0.npy").read_bytes() == (tmp_path / "b-0.npy").read_bytes()
    inspected = json.loads(output_of("inspect", small, "--json"))
    assert all("debug_identity" not in entry["key"] for entry in inspected["named_data"])


def test_diff_of_other_weights_says_so(net: Net, program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pte"
    torch.manual_seed(1)
    exported = export(Net().eval(), (torch.randn(8, 64),), strict=True)
    with other.open("wb") as file:
        to_edge(exported).to_executorch().write_to_file(file)
    done = run("diff", program, other, "--json")
    assert done.returncode == 1
    diff = json.loads(done.stdout)
    assert not diff["equal"]
    assert len(diff["constants"]["only_in"][0]) >= 4


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_verb(shell: str) -> None:
    script = output_of("completions", shell)
    for verb in (
        "inspect",
        "run",
        "profile",
        "report",
        "memory",
        "diff",
        "strip",
        "generate",
        "chat",
    ):
        assert verb in script
    assert "trace" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last word of a command line."""
    ask = (
        f"COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}\n"
        '_executorch; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_bash_completes_verbs_options_and_files(tmp_path: Path) -> None:
    script = output_of("completions", "bash")
    assert {"profile", "report"} <= set(completed(script, "executorch", ""))
    assert completed(script, "executorch", "prof") == ["profile"]
    assert completed(script, "executorch", "profile", "--tra") == ["--trace"]
    (tmp_path / "net.pte").touch()
    found = completed(script, "executorch", "run", f"{tmp_path}/n")
    assert found == [f"{tmp_path}/net.pte"]


@pytest.mark.parametrize(
    "verb",
    ["inspect", "run", "profile", "report", "memory", "diff", "strip", "generate", "chat", "serve"],
)
def test_every_verb_has_an_example(verb: str) -> None:
    assert f"Example: executorch {verb} " in output_of(verb, "--help")


def test_misspellings_are_answered_with_what_is_close(program: Path) -> None:
    done = run("profle", program)
    assert (done.returncode, "did you mean 'profile'?" in done.stderr) == (2, True)
    done = run("profile", program, "--trce", "x")
    assert (done.returncode, "did you mean '--trace'?" in done.stderr) == (2, True)
    done = run("run", program, "--method", "foward")
    assert (done.returncode, "did you mean 'forward'?" in done.stderr) == (1, True)


def test_damaged_files_are_errors_and_leave_no_output(program: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pte"
    damaged.write_bytes(program.read_bytes()[:-1000])
    commands = [
        ("inspect", damaged),
        ("run", damaged, "--output", tmp_path / "y"),
        ("profile", damaged, "--output", tmp_path / "p.json", "--trace", tmp_path / "t.json"),
        ("report", damaged, "--output", tmp_path / "r.html"),
        ("memory", damaged, "--svg", tmp_path / "m.svg"),
        ("diff", damaged, program),
        ("strip", damaged, "--output", tmp_path / "s.pte"),
        ("inspect", tmp_path / "none.pte"),
    ]
    for command in commands:
        done = run(*command)
        assert done.returncode == 1, command
        lines = done.stderr.splitlines()
        assert str(command[1]) in lines[-1], (command, lines)
        assert len(set(lines)) == len(lines), (command, lines)
    assert list(tmp_path.iterdir()) == [damaged]


def test_the_version_is_the_packages() -> None:
    import executorch

    assert output_of("--version").split() == ["executorch", executorch.__version__]


def test_verbs_of_python_get_all_that_follows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done\nexit 3\n')
    python.chmod(0o755)
    monkeypatch.setenv("EXECUTORCH_PYTHON", str(python))
    done = run("export", "model.py:example", "--help", "-o", "a b.pte", "--verbose", "--", "-x")
    words = ["model.py:example", "--help", "-o", "a b.pte", "--verbose", "--", "-x"]
    start = ["-m", "executorch.extension.command.python_verb"]
    assert done.returncode == 3
    assert done.stdout.splitlines() == [*start, "executorch.export", *words]
    told = run("parity", "--help").stdout.split()
    assert told == [*start, "executorch.devtools.parity", "--help"]
    monkeypatch.setenv("EXECUTORCH_PYTHON", str(tmp_path / "none"))
    done = run("parity")
    assert done.returncode == 1
    assert "EXECUTORCH_PYTHON" in done.stderr


def test_an_interrupt_ends_verbs_of_python_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "verb.py").write_text("import sys\nprint(sys.argv[1:])\nraise KeyboardInterrupt")
    command = [sys.executable, "-m", "executorch.extension.command.python_verb", "verb", "-o", "x"]
    places = os.pathsep.join([str(tmp_path), str(Path(executorch.__file__).parents[1])])
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": places}
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "['-o', 'x']\n", "")


def test_output_has_a_short_name(program: Path, tmp_path: Path) -> None:
    output_of("strip", program, "-o", tmp_path / "small.pte")
    assert (tmp_path / "small.pte").exists()


class Scalars(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> tuple[torch.Tensor, int]:
        return x.log(), n + 1


@pytest.fixture(scope="module")
def scalars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scalars") / "scalars.pte"
    path.write_bytes(to_edge(export(Scalars(), (torch.ones(4), 3))).to_executorch().buffer)
    return path


def test_json_has_numbers_and_names_what_json_has_no_number_for(
    scalars: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 0, -1, np.inf], np.float32))
    done = run("run", scalars, "--inputs", tmp_path / "x.npy", "--all", "--json")
    logarithms, n = json.loads(done.stdout)["outputs"]
    assert logarithms["data"] == [0.0, "-inf", "nan", "inf"]
    assert n == 4
    assert done.stderr == ""  # that an input is a number is no error


def test_empty_names_are_not_taken_for_the_default(program: Path) -> None:
    before = program.read_bytes()
    for words in (
        ("strip", program, "--output", ""),
        ("report", program, "--output", ""),
        ("run", program, "--data", ""),
        ("run", program, "--method", ""),
        ("inspect", ""),
    ):
        done = run(*words)
        assert (done.returncode, "it is empty" in done.stderr) == (2, True), words
    assert program.read_bytes() == before


def test_results_do_not_replace_what_is_read_nor_one_another(program: Path, tmp_path: Path) -> None:
    before = program.read_bytes()
    link = tmp_path / "link.pte"
    link.symlink_to(program)
    for words in (
        ("profile", program, "--output", program),
        ("profile", program, "--trace", link),
        ("profile", program, "--output", tmp_path / "p", "--trace", tmp_path / "." / "p"),
        ("report", program, "--output", program),
        ("memory", program, "--svg", program),
    ):
        done = run(*words)
        assert (done.returncode, "written to it" in done.stderr) == (2, True), words
    assert program.read_bytes() == before
    assert list(tmp_path.iterdir()) == [link]
    same = run("profile", program, "--output", "/dev/null", "--trace", "/dev/null")
    assert same.returncode == 0, same.stderr


def test_numbers_out_of_range_are_told_with_the_range(program: Path) -> None:
    for words in (
        ("run", program, "--threads", -1),
        ("profile", program, "--runs", 2**63),
        ("profile", program, "--warm-up", "nan"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert f"'{words[-1]}' is no integer from 0 to 4294967295" in done.stderr
    done = run("serve", program, "--max-tokens", -1)
    assert (done.returncode, "not in range 0 to 1099511627776" in done.stderr) == (2, True)


def test_what_is_wrong_with_the_command_line_ends_with_2(program: Path) -> None:
    for words, cause in (
        (("run", program, "--shape", "2x"), "'2x' is no shape"),
        (("generate", program, "--prompt", "a", "--temperature", "nan"), "temperature is nan"),
        (("generate", program, "--prompt", "a", "--bias", "3"), "TOKEN:NUMBER"),
        (("generate", program, "--prompt", "a", "--prompt-file", "b"), "excludes"),
        (("--json", "inspect", program), "'--json' belongs behind inspect"),
        (("--versio",), "did you mean '--version'?"),
    ):
        done = run(*words)
        assert (done.returncode, cause in done.stderr) == (2, True), (words, done.stderr)


def test_lists_leave_the_model_alone(program: Path, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    np.save(x, np.ones((5, 64), np.float32))
    output_of("run", "--inputs", x, program, "--runs", 2)
    output_of("run", "--shape", "2x64", program, "--runs", 2)
    for option in ("--stop", "--stop-token", "--bias", "--data"):
        done = run("generate", option, 1, program, "--prompt", "a")
        assert "model is required" not in done.stderr


def test_the_commands_own_options_may_stand_behind_the_verb(program: Path) -> None:
    assert run("inspect", program, "--verbose").returncode == 0
    assert "did you mean '--verbose'?" in run("inspect", program, "--verbos").stderr


@pytest.mark.parametrize("verb", ["inspect", "memory", "strip", "run"])
def test_what_is_no_regular_file_is_called_by_its_kind(verb: str, tmp_path: Path) -> None:
    for path, cause in (
        (tmp_path, "is a directory, expected a regular file"),
        ("/dev/null", "is a device or pipe, expected a regular file"),
        (tmp_path / "none.pte", "No such file or directory"),
    ):
        done = run(verb, path)
        assert (done.returncode, cause in done.stderr) == (1, True), done.stderr


def test_inputs_that_do_not_fit_are_named(program: Path, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    np.save(x, np.ones((5, 64), np.float32))
    done = run("run", program, "--inputs", x, "--shape", "4x64")
    assert (done.returncode, f"{x} is 5x64, --shape says 4x64" in done.stderr) == (1, True)
    np.save(x, np.ones((33, 64), np.float32))
    assert (
        f"{x}: input 0 (x, Float 32x64 at most) cannot be 33x64"
        in run("run", program, "--inputs", x).stderr
    )
    for path, cause in ((tmp_path, "directory"), (tmp_path / "none", "No such file")):
        done = run("run", program, "--inputs", path)
        assert (done.returncode, cause in done.stderr) == (1, True), done.stderr


def test_control_characters_of_files_are_printed_as_their_codes(
    program: Path, tmp_path: Path
) -> None:
    name = tmp_path / "a\x1bb.pte"
    assert "a\\x1bb.pte" in run("inspect", name).stderr
    name.write_bytes(program.read_bytes().replace(b"aten::gelu", b"aten\x1b:gelu"))
    assert "aten\\x1b:gelu" in output_of("inspect", name)
