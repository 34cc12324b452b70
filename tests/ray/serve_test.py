"""examples/ray/serve.py on a local cluster of several processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed; ./dev ray")

from tests.ray.cluster import example, memory_of  # noqa: E402
from tests.ray.conftest import LIMIT, WIDTH, Task  # noqa: E402


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(url: str, body: bytes) -> tuple[int, Any]:
    """Status and JSON, or the text of what is none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        return error.code, json.loads(text) if text.startswith("{") else text


def answer(url: str, rows: np.ndarray) -> tuple[np.ndarray, int]:
    """The first output, and how often a request had to be sent again, as of a replica that died."""
    body = json.dumps({"inputs": [rows.tolist()]}).encode()
    for again in range(100):
        try:
            status, found = post(url, body)
        except (urllib.error.URLError, ConnectionError):
            status = 503
        if status == 200:
            return np.array(found["outputs"][0], np.float32), again
        assert status >= 500, found
        time.sleep(0.1)
    raise AssertionError(f"{url}: status {status} a hundred times: {found}")


def test_replicas_answer_share_the_weights_and_may_die(task: Task) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    size = task.program.stat().st_size
    starts = range(0, 80 * LIMIT, LIMIT)
    with example("serve.py", task.program, "--port", str(port)) as run:
        run.until("listening", lambda: f"listening at {url}" in run.said())
        for body, said in (
            (b"[", "Expecting value"),
            (b'{"inputs": []}', "with 1 of them"),
            (b'{"inputs": [[[1, 2], [3]]]}', "inhomogeneous"),
            (json.dumps({"inputs": [[[0.0] * (WIDTH + 1)]]}).encode(), "cannot multiply"),
        ):
            status, found = post(url, body)
            assert status == 400 and said in found["error"], found

        killed: list[int] = []

        def ask(start: int) -> tuple[np.ndarray, int]:
            if start == starts[len(starts) // 2]:
                killed.append(run.workers(task.program)[0])
                os.kill(killed[0], signal.SIGKILL)
            return answer(url, task.x[start : start + LIMIT])

        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(ask, starts))
        assert killed
        for start, (y, _) in zip(starts, found, strict=True):
            expected = task.y[start : start + LIMIT]
            np.testing.assert_allclose(y, expected, rtol=0, atol=task.tolerance)

        run.until("another replica", lambda: len(set(run.workers(task.program)) - {*killed}) == 2)

        def all_read() -> bool:
            answer(url, task.x[:LIMIT])
            mapped = [memory_of(pid, task.program) for pid in run.workers(task.program)]
            return all(each.get("Rss", 0) > 0.95 * size for each in mapped)

        run.until("two replicas that have read all weights", all_read)
        mapped = [memory_of(pid, task.program) for pid in run.workers(task.program)]
        assert sum(each["Pss"] for each in mapped) < 1.05 * size
