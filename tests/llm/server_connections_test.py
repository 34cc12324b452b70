"""Connections of the server: many, slow, broken off, and of clients that people would not use."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.built import needs
from tests.llm.scripted_server import SCRIPTED, Server

pytestmark = needs(SCRIPTED)


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


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("stream", [False, True])
def test_clients_that_end_their_side_are_answered(slow: Server, version: str, stream: bool) -> None:
    body = json.dumps({"prompt": "COUNT 40", "max_tokens": 500, "stream": stream}).encode()
    head = f"POST /v1/completions HTTP/{version}\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    before = slow.metric("cancelled_total")
    answer = slow.raw(head.encode() + body, ends=True)
    assert b"HTTP/1.1 200 OK" in answer
    assert b'"finish_reason":"stop"' in answer
    assert answer.count(b"100 Continue") == (version == "1.1" and not stream)
    assert slow.metric("cancelled_total") == before


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
