"""A server whose model follows a script, for tests of what its clients see."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import openai

from tests.built import BUILD

SCRIPTED = BUILD / "executorch" / "extension" / "llm" / "server" / "scripted_server"


class Server:
    """Its model answers in upper case, or what it is told to SAY."""

    def __init__(self, *arguments: object) -> None:
        command = [str(SCRIPTED), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> Any:
        options = {"api_key": "none", "max_retries": 0, "timeout": 30} | options
        return openai.OpenAI(base_url=f"{self.url}/v1", **options)

    def chat(self, text: str, **options: Any) -> Any:
        messages = [{"role": "user", "content": text}]
        return self.client().chat.completions.create(model="scripted", messages=messages, **options)

    def raw(self, data: bytes, seconds: float = 10, ends: bool = False) -> bytes:
        """All that comes back for some bytes; `ends`: no more are sent."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            connection.sendall(data)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            received = b""
            while part := connection.recv(1 << 16):
                received += part
            return received

    def post(self, body: bytes, path: str = "/v1/chat/completions", **headers: str) -> Any:
        headers = {"Content-Type": "application/json"} | headers
        request = urllib.request.Request(self.url + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = re.search(rf"^executorch_{re.escape(name)} (\S+)$", text, re.M)
        assert found, (name, text)
        return float(found[1])

    def wait_for_metric(self, name: str, value: float) -> None:
        deadline = time.monotonic() + 20
        while self.metric(name) != value:
            assert time.monotonic() < deadline, (name, self.metric(name), value)
            time.sleep(0.02)

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        assert found
        return int(found[1])

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> str:
        if self.process.poll() is None:
            self.process.send_signal(sent)
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        assert self.process.wait(timeout=30) == 0
        return rest
