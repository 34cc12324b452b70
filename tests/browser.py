"""Headless Chromium, driven over a pipe by its DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")

# The descriptors at which Chromium reads and writes messages, as --remote-debugging-pipe says.
_READS, _WRITES = 3, 4
_PATIENCE = 60  # seconds, for one answer


class Browser:
    """`with Browser(folder) as browser`; `folder` gets its profile, and should be empty."""

    def __init__(self, folder: Path) -> None:
        from_us, self._to_browser = os.pipe()
        self._from_browser, to_us = os.pipe()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={folder}"]
        moved = f"exec {_READS}<&{from_us} {_WRITES}>&{to_us}; " + 'exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", moved, "bash", *command],
            pass_fds=(from_us, to_us),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._received = b""
        self._n_calls = 0

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._to_browser)
        os.close(self._from_browser)

    def open(self, url: str) -> Page:
        target = self.call("Target.createTarget", url=url)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._n_calls += 1
        message: dict[str, Any] = {"id": self._n_calls, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._receive())
            if answer.get("id") == self._n_calls:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self) -> bytes:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from_browser], [], [], _PATIENCE)
            part = os.read(self._from_browser, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError("Chromium ended" if ready else "Chromium does not answer")
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return message


class Page:
    """A page of a Browser; 1600 by 1000 pixels."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        size = {"width": 1600, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", session, **size)

    def value(self, expression: str) -> Any:
        """Of a JavaScript expression, awaited; what it throws is raised."""
        how = {"returnByValue": True, "awaitPromise": True}
        done = self._browser.call("Runtime.evaluate", self._session, expression=expression, **how)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait_for(self, expression: str, seconds: float = _PATIENCE) -> Any:
        """Its first value that is true; what it throws until then is not raised."""
        last: object = None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                last = self.value(expression)
            except RuntimeError as e:
                last = e
            if last and not isinstance(last, RuntimeError):
                return last
            time.sleep(0.1)
        raise TimeoutError(f"{expression}: {last}")
