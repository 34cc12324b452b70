"""The server, used by the clients that people use, and by some that they would not."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.browser import Browser, needs_chromium
from tests.built import BUILD, needs

SCRIPTED = BUILD / "executorch" / "extension" / "llm" / "server" / "scripted_server"
pytestmark = needs(SCRIPTED)


class Server:
    """One whose model follows a script: it answers in upper case, or what it is told to SAY."""

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

    def raw(self, data: bytes, seconds: float = 10) -> bytes:
        """All that comes back for some bytes."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            connection.sendall(data)
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


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    assert server.stop() == "stopped\n"


@pytest.fixture(scope="module")
def slow() -> Iterator[Server]:
    """2 ms for each token, 2 conversations, and 8 requests that wait."""
    server = Server(2000, 2, 8)
    yield server
    assert server.stop() == "stopped\n"


def test_openai_client_chats(server: Server) -> None:
    answer = server.chat("hello ü", temperature=0, seed=1)
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "HELLO ü")
    assert choice.finish_reason == "stop"
    assert answer.usage.completion_tokens == len("HELLO ü".encode())
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert [model.id for model in server.client().models.list()] == ["scripted"]
    assert server.client().models.retrieve("scripted").id == "scripted"


def test_openai_client_streams(server: Server) -> None:
    parts = list(server.chat("COUNT 20", stream=True, stream_options={"include_usage": True}))
    text = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    assert text == "".join(f"{i} " for i in range(20))
    assert parts[0].choices[0].delta.role == "assistant"
    assert [p.choices[0].finish_reason for p in parts if p.choices][-1] == "stop"
    assert parts[-1].usage.completion_tokens == len(text)
    assert len({p.id for p in parts}) == 1


def test_openai_client_completes(server: Server) -> None:
    client = server.client()
    answer = client.completions.create(model="scripted", prompt="abc", echo=True, max_tokens=2)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("abcAB", "length")
    tokens = client.completions.create(model="scripted", prompt=[97, 98], logprobs=1)
    assert tokens.choices[0].text == "AB"
    assert tokens.choices[0].logprobs.tokens == ["A", "B"]
    parts = client.completions.create(model="scripted", prompt="xyz", stream=True)
    assert "".join(p.choices[0].text for p in parts) == "XYZ"


def test_answers_end_where_they_are_told_to(server: Server) -> None:
    for stream in (False, True):

        def ask(text: str, stream: bool = stream, **options: Any) -> tuple[str, str]:
            answer = server.chat(text, stream=stream, **options)
            if not stream:
                return answer.choices[0].message.content, answer.choices[0].finish_reason
            parts = list(answer)
            text = "".join(p.choices[0].delta.content or "" for p in parts)
            return text, parts[-1].choices[0].finish_reason

        assert ask("SAY one STOP two", stop=["STOP"]) == ("one ", "stop")
        assert ask("SAY one STOx", stop="STOP") == ("one STOx", "stop")
        assert ask("COUNT 50", max_completion_tokens=5) == ("0 1 2", "length")
        assert ask("COUNT 50", max_tokens=1) == ("0", "length")


def test_probabilities_are_told(server: Server) -> None:
    answer = server.chat("SAY ab", logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert [entry.token for entry in content] == ["a", "b"]
    assert all(entry.logprob < 0 for entry in content)
    assert [top.token for top in content[0].top_logprobs][0] == "a"
    parts = list(server.chat("SAY ab", logprobs=True, stream=True))
    told = [e.token for p in parts if p.choices[0].logprobs for e in p.choices[0].logprobs.content]
    assert told == ["a", "b"]


def test_probabilities_of_completions_have_places(server: Server) -> None:
    client = server.client()
    options = {"model": "scripted", "prompt": "aü€b", "logprobs": 20}
    whole = client.completions.create(**options).choices[0]
    # A token is a byte: those of a character have its place.
    assert whole.text == "Aü€B"
    assert whole.logprobs.text_offset == [0, 1, 1, 2, 2, 2, 3]
    parts = list(client.completions.create(stream=True, **options))
    told = [o for p in parts if p.choices[0].logprobs for o in p.choices[0].logprobs.text_offset]
    assert told == whole.logprobs.text_offset

    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(echo=True, **options)
    assert caught.value.param == "logprobs"


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "friends": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("stream", [False, True])
def test_answers_follow_a_schema(server: Server, stream: bool) -> None:
    import jsonschema

    schema_format = {
        "type": "json_schema",
        "json_schema": {"name": "person", "schema": PERSON, "strict": True},
    }
    for wish in ("SAY nonsense", 'SAY {"name": "Ada", "age": 36}', "SAY {{{{", "SAY 999999999"):
        answer = server.chat(wish, response_format=schema_format, stream=stream)
        if stream:
            text = "".join(p.choices[0].delta.content or "" for p in answer)
        else:
            text = answer.choices[0].message.content
        jsonschema.validate(json.loads(text), PERSON)
        answer = server.client().completions.create(
            model="scripted",
            prompt=wish,
            max_tokens=500,
            stream=stream,
            extra_body={"response_format": schema_format},
        )
        text = "".join(p.choices[0].text for p in answer) if stream else answer.choices[0].text
        jsonschema.validate(json.loads(text), PERSON)
    answer = server.chat("SAY hello", response_format={"type": "json_object"})
    assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_schemas_that_cannot_be_used_are_errors_with_their_place(server: Server) -> None:
    for schema, place in (
        ({"type": "object", "properties": {"a": {"not": {}}}}, "/properties/a/not"),
        ({"type": "string", "maxLength": 1 << 40}, "/maxLength"),
        ({"type": "string", "pattern": "("}, "/pattern"),
        ({"$ref": "#"}, "no text can satisfy it"),
    ):
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        with pytest.raises(openai.BadRequestError, match=re.escape(place)) as caught:
            server.chat("x", response_format=wanted)
        assert caught.value.param == "response_format"


def test_errors_are_those_of_the_protocol(server: Server) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        server.client().chat.completions.create(
            model="other", messages=[{"role": "user", "content": "x"}]
        )
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        server.chat("x", temperature=9)
    assert wrong.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as long:
        server.chat("x" * 5000)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.InternalServerError):
        server.chat("FAIL")
    events = server.client().chat.completions.create(
        model="scripted", messages=[{"role": "user", "content": "FAIL"}], stream=True
    )
    with pytest.raises(openai.APIError):
        list(events)
    for body in (b"", b"{", b"\xff", b"[" * 100000, b"null", b'{"messages": 1e999}'):
        status, answer = server.post(body)
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error"), body
    assert server.post(b"{}", **{"Content-Type": "text/plain"})[0] == 415
    assert server.post(b"{}", "/v1/nothing")[0] == 404
    assert server.post(b"{}", "/health")[0] == 405
    assert server.chat("still here").choices[0].message.content == "STILL HERE"


def test_curl_gets_what_it_asks_for(server: Server) -> None:
    def curl(*arguments: str) -> str:
        command = ["curl", "-sS", "--max-time", "20", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    chat = f"{server.url}/v1/chat/completions"
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
    json_type = ("-H", "Content-Type: application/json")
    answer = json.loads(curl(chat, *json_type, "-d", body))
    assert answer["choices"][0]["message"]["content"] == "HI"
    streaming = json.dumps(json.loads(body) | {"stream": True})
    events = curl("-N", chat, *json_type, "-d", streaming).strip().split("\n\n")
    assert all(event.startswith("data: ") for event in events)
    assert events[-1] == "data: [DONE]"
    assert curl(chat, *json_type, "-H", "Transfer-Encoding: chunked", "-d", body).startswith("{")
    assert curl("-H", "Expect: 100-continue", chat, *json_type, "-d", body).startswith("{")
    assert json.loads(curl(f"{server.url}/health")) == {"status": "ok"}
    assert "200 OK" in curl("-I", f"{server.url}/health")
    assert "405" in curl("-i", chat)


def test_pages_of_other_sites_are_kept_out(server: Server) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
    assert server.post(body, Origin="http://evil.example")[0] == 403
    assert server.post(body, Origin="null")[0] == 403
    assert server.post(body, Host="evil.example")[0] == 403
    assert server.post(body, Origin=server.url)[0] == 200
    assert server.post(body, Host=f"localhost:{server.port}")[0] == 200
    assert server.post(body, Host="LOCALHOST")[0] == 200
    for name in ("127.0.0.1.evil.example", "127.evil.example", "[::1].evil.example"):
        host = f"{name}:{server.port}"
        assert server.post(body, Host=host, Origin=f"http://{host}")[0] == 403, name
    assert server.raw(b"GET /v1/models HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    two = b"Host: localhost\r\nHost: evil.example\r\n\r\n"
    assert server.raw(b"GET /v1/models HTTP/1.1\r\n" + two).startswith(b"HTTP/1.1 400 ")


def test_old_clients_get_streams_without_chunks(server: Server) -> None:
    body = json.dumps({"prompt": "abc", "stream": True}).encode()
    for more in (b"", b"Connection: keep-alive\r\n"):
        head = b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n" + more
        answer = server.raw(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        said, events = answer.split(b"\r\n\r\n", 1)
        assert said.startswith(b"HTTP/1.1 200 ") and b"Transfer-Encoding" not in said
        assert b"Connection: close" in said
        parts = events.decode().split("\n\n")
        assert parts[-2:] == ["data: [DONE]", ""]
        texts = [json.loads(p.removeprefix("data: "))["choices"][0]["text"] for p in parts[:-2]]
        assert "".join(texts) == "ABC"


def test_answers_without_a_body_and_of_other_methods(server: Server) -> None:
    end = b"HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = server.raw(b"GET /favicon.ico " + end)
    assert answer.startswith(b"HTTP/1.1 204 ") and b"Content-Length" not in answer
    for request, allowed in (
        (b"GET /v1/chat/completions ", b"POST"),
        (b"HEAD /v1/completions ", b"POST"),
        (b"DELETE /v1/models/scripted ", b"GET, HEAD"),
        (b"POST /health ", b"GET, HEAD"),
    ):
        answer = server.raw(request + end)
        assert answer.startswith(b"HTTP/1.1 405 "), request
        assert b"\r\nAllow: " + allowed + b"\r\n" in answer, request


def test_requests_need_the_key(server: Server) -> None:
    with_key = Server(0, 2, 8, "secret")
    try:
        chat = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
        for key in ("wrong", "secre", "secrets", "secretsecret"):
            with pytest.raises(openai.AuthenticationError):
                with_key.client(api_key=key).chat.completions.create(**chat)
        right = with_key.client(api_key="secret")
        assert right.chat.completions.create(**chat).choices[0].message.content == "X"
        for path, status in (("/health", 200), ("/", 200), ("/metrics", 401), ("/v1/models", 401)):
            answer = with_key.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    finally:
        with_key.stop()


def test_conversations_keep_what_was_computed(server: Server) -> None:
    messages = [{"role": "user", "content": f"a long beginning {'x' * 300}"}]
    client = server.client()
    for turn in range(4):
        answer = client.chat.completions.create(model="scripted", messages=messages)
        cached = answer.usage.prompt_tokens_details.cached_tokens
        assert turn == 0 or cached > 300
        messages += [
            {"role": "assistant", "content": answer.choices[0].message.content},
            {"role": "user", "content": f"turn {turn}"},
        ]


def test_generation_ends_when_the_client_goes(slow: Server) -> None:
    before = slow.metric("cancelled_total")
    stream = slow.chat("COUNT 900", stream=True)
    next(iter(stream))
    assert slow.metric("sessions_busy") == 1
    stream.close()
    slow.wait_for_metric("sessions_busy", 0)
    assert slow.metric("cancelled_total") == before + 1
    # The same while the whole answer is waited for.
    with pytest.raises(openai.APITimeoutError):
        slow.client(timeout=0.3).chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "COUNT 900"}]
        )
    slow.wait_for_metric("sessions_busy", 0)
    assert slow.metric("cancelled_total") == before + 2


def test_a_hundred_connections_are_answered_or_refused(slow: Server) -> None:
    def ask(i: int) -> str:
        try:
            return slow.chat(f"number {i}").choices[0].message.content
        except openai.InternalServerError as error:
            assert error.status_code == 503
            assert error.response.headers["retry-after"] == "1"
            return "refused"

    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(ask, range(100)))
    answered = [i for i, answer in enumerate(answers) if answer != "refused"]
    assert all(answers[i] == f"NUMBER {i}" for i in answered)
    assert len(answered) >= 10  # two at once, and eight that waited
    assert slow.metric("requests_waiting") == 0
    # Clients that ask again, as the answer says, are all served.
    patient = slow.client(max_retries=30)

    def ask_patiently(i: int) -> str:
        messages = [{"role": "user", "content": f"number {i}"}]
        answer = patient.chat.completions.create(model="scripted", messages=messages)
        return answer.choices[0].message.content

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(ask_patiently, range(20))) == [f"NUMBER {i}" for i in range(20)]


def n_connections(server: Server) -> float:
    """Infinite while the server has too many to say."""
    try:
        return server.metric("connections")
    except urllib.error.HTTPError as error:
        assert error.code == 503
        return float("inf")


def test_slow_clients_do_not_keep_others_out(server: Server) -> None:
    """More connections than there may be, each of which sends a byte now and then."""
    slow_ones = []
    done = threading.Event()
    for _ in range(150):
        connection = socket.create_connection(("127.0.0.1", server.port), 5)
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nA: ")
        slow_ones.append(connection)

    def drip() -> None:
        while not done.wait(0.2):
            for connection in slow_ones:
                with contextlib.suppress(OSError):
                    connection.sendall(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        patient = server.client(max_retries=10)
        messages = [{"role": "user", "content": "hi"}]
        for _ in range(5):
            answer = patient.chat.completions.create(model="scripted", messages=messages)
            assert answer.choices[0].message.content == "HI"
        deadline = time.monotonic() + 20  # a head may take 2 seconds, and reading its answer 2
        while n_connections(server) > 20:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        done.set()
        dripping.join()
        for connection in slow_ones:
            connection.close()


def test_anything_else_is_answered_or_closed(server: Server) -> None:
    post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    large = post + b"Content-Length: 99999999\r\n\r\n"
    assert server.raw(large).startswith(b"HTTP/1.1 413 ")
    status, answer = server.post(b" " * (1 << 20) + b"{}")
    assert (status, answer["error"]["code"]) == (413, "invalid_http")
    assert server.raw(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n").startswith(
        b"HTTP/1.1 431 "
    )
    assert server.raw(b"\x16\x03\x01\x02\x00\x01\x00" * 3000).startswith(b"HTTP/1.1 4")
    assert server.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").startswith(b"HTTP/1.1 505 ")
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert server.raw(3 * health + b"garbage\r\n\r\n" + health).count(b"HTTP/1.1 200 ") == 3
    assert server.raw(post + b"Content-Length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408 ")
    rng = random.Random(1)
    pieces = [health, b"\r\n", b"POST ", b"Content-Length: 7\r\n", b"\0\xff", b"{}", b"x" * 999]
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
            connection.sendall(b"".join(rng.choices(pieces, k=rng.randint(1, 8))))
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                connection.recv(10)
    assert server.chat("fine").choices[0].message.content == "FINE"


def test_memory_does_not_grow(server: Server) -> None:
    def work(n: int) -> None:
        for i in range(n):
            schema = {"type": "object", "properties": {f"k{i % 40}": {"type": "string"}}}
            wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
            body: dict[str, Any] = {"messages": [{"role": "user", "content": f"COUNT {i % 90}"}]}
            body |= {"response_format": wanted} if i % 4 == 0 else {"stream": i % 4 == 1}
            server.raw(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(json.dumps(body)), json.dumps(body).encode())
            )

    work(400)
    before = server.resident_kib()
    work(800)
    assert server.resident_kib() <= before + 4096


def test_signals_let_answers_be_completed() -> None:
    for sent in (signal.SIGTERM, signal.SIGINT):
        server = Server(2000, 1, 8)
        stream = iter(server.chat("COUNT 100", stream=True))
        next(stream)
        server.process.send_signal(sent)
        text = "".join(p.choices[0].delta.content or "" for p in stream)
        assert text == "".join(f"{i} " for i in range(100))
        assert server.stop() == "stopped\n"


def test_signals_end_what_takes_too_long() -> None:
    server = Server(20000, 1, 8)
    stream = iter(server.chat("COUNT 900", stream=True))
    next(stream)
    began = time.monotonic()
    assert server.stop() == "stopped\n"
    assert time.monotonic() - began < 15


@needs_chromium
def test_the_page_chats_in_a_browser(slow: Server, tmp_path: Path) -> None:
    with Browser(tmp_path / "browser") as browser:
        page = browser.open(f"{slow.url}/")
        page.wait_for("document.getElementById('model').textContent === 'scripted'")

        def say(text: str) -> None:
            page.value(
                f"document.getElementById('text').value = {json.dumps(text)},"
                "document.getElementById('form').requestSubmit()"
            )

        def texts(role: str) -> list[str]:
            return page.value(f"[...document.querySelectorAll('.{role}')].map(m => m.textContent)")

        say("hello <b>page</b>")
        page.wait_for("!!document.querySelector('.note')")
        assert texts("user") == ["hello <b>page</b>"]
        assert texts("assistant") == ["HELLO <B>PAGE</B>"]
        assert page.value("document.querySelectorAll('.message b').length") == 0
        # A long answer grows while it is made, and stops when asked to.
        say("COUNT 900")
        page.wait_for("document.querySelectorAll('.assistant')[1].textContent.includes('10 ')")
        assert page.value("document.getElementById('send').hidden")
        page.value("document.getElementById('stop').click()")
        page.wait_for("document.querySelectorAll('.note')[1].textContent === 'stopped'")
        slow.wait_for_metric("sessions_busy", 0)
        assert page.value("!document.getElementById('send').hidden")
        assert "899" not in texts("assistant")[1]
        # What the server refuses is shown.
        page.value("document.getElementById('temperature').value = 5")
        say("too hot")
        page.wait_for("!!document.querySelector('.wrong')")
        assert "temperature" in texts("wrong")[0]
        colours = [
            page.value("getComputedStyle(document.body).backgroundColor"),
            page.value(
                "document.getElementById('theme').click(),"
                "getComputedStyle(document.body).backgroundColor"
            ),
        ]
        assert colours[0] != colours[1]
        page.value("document.getElementById('new').click()")
        assert texts("message") == []
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
