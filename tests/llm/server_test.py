"""What the server answers, to the clients that people use."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.browser import Browser, needs_chromium
from tests.built import needs
from tests.llm.scripted_server import SCRIPTED, Server

pytestmark = needs(SCRIPTED)


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


def test_several_answers_to_one_question(server: Server) -> None:
    asked = server.metric("prompt_tokens_total")
    one = server.chat("SAY ab", logprobs=True)
    prompt = server.metric("prompt_tokens_total") - asked
    many = server.chat("SAY ab", n=3, logprobs=True)
    assert [c.index for c in many.choices] == [0, 1, 2]
    for choice in many.choices:
        assert (choice.message.content, choice.finish_reason) == ("ab", "stop")
        assert [entry.token for entry in choice.logprobs.content] == ["a", "b"]
    assert many.usage.completion_tokens == 3 * one.usage.completion_tokens
    assert many.usage.prompt_tokens == one.usage.prompt_tokens == prompt
    assert server.metric("prompt_tokens_total") == asked + 2 * prompt
    parts = list(
        server.chat(
            "SAY ab", n=2, stream=True, logprobs=True, stream_options={"include_usage": True}
        )
    )
    for index in (0, 1):
        own = [p.choices[0] for p in parts if p.choices and p.choices[0].index == index]
        assert own[0].delta.role == "assistant" and own[-1].finish_reason == "stop"
        assert "".join(c.delta.content or "" for c in own) == "ab"
    assert parts[-1].usage.completion_tokens == 4
    completed = server.client().completions.create(
        model="scripted", prompt="ab", n=2, echo=True, max_tokens=1
    )
    assert [(c.index, c.text, c.finish_reason) for c in completed.choices] == [
        (0, "abA", "length"),
        (1, "abA", "length"),
    ]
    formatted = server.chat("SAY {", n=2, response_format={"type": "json_object"})
    assert [json.loads(c.message.content) for c in formatted.choices] == [{"": ""}] * 2
    with pytest.raises(openai.BadRequestError, match="from 1 to 128"):
        server.chat("hello", n=129)


TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {"type": "object", "properties": {"z": {}, "a": {}}},
        },
    }
]


WHERE: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}},
    "required": ["place"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}


def test_tools_are_given_to_templates_that_take_them(server: Server) -> None:
    with pytest.raises(
        openai.BadRequestError, match=r"chat template \(chatml\) does not take tools"
    ):
        server.chat("hello", tools=TOOLS)
    assert (
        server.chat("hello", tools=TOOLS, tool_choice="none").choices[0].message.content == "HELLO"
    )
    takes = Server(
        0, 2, 8, "", "{% for m in messages %}{% if not tools or m.role == 'tool' %}"
        "<|im_start|>user\nSAY {{ m.content }}<|im_end|>{% endif %}{% endfor %}"
        "{% if tools and messages|length == 1 %}<|im_start|>user\nSAY {{ tools|tojson }}<|im_end|>"
        "{% endif %}",
    )  # fmt: skip
    try:
        assert takes.chat("hello").choices[0].message.content == "hello"
        answer = takes.chat("hello", tools=TOOLS, tool_choice="auto")
        assert answer.choices[0].message.content == json.dumps(TOOLS)  # in the request's order
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "add(1, 2)"},
            {"role": "tool", "content": "3", "tool_call_id": "1"},
        ]
        answer = takes.client().chat.completions.create(
            model="scripted", messages=messages, tools=TOOLS
        )
        assert answer.choices[0].message.content == "3"
    finally:
        assert takes.stop() == "stopped\n"


def test_calls_of_functions_are_found_and_their_results_are_taken() -> None:
    """The whole turn: the model asks for a call, the client answers it, and the template has both
    as objects."""
    server = Server(
        0, 2, 8, "", "{% if tools %}<|im_start|>user\nSAY {% if messages|length == 1 %}"
        "{{ messages[0].content }}{% else %}{% for call in messages[1].tool_calls %}"
        "{{ call.function.arguments.z }} {{ call.function|tojson }}{% endfor %}"
        " {{ messages[2].tool_call_id == messages[1].tool_calls[0].id }} {{ messages[2].content }}"
        "{% endif %}<|im_end|>{% endif %}",
    )  # fmt: skip
    said = 'Wait. <tool_call>{"name": "add", "arguments": {"z": 1, "a": 2}}</tool_call>'
    try:
        choice = server.chat(said, tools=TOOLS).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Wait.")
        (call,) = choice.message.tool_calls
        assert (call.function.name, call.function.arguments) == ("add", '{"z":1,"a":2}')
        answer = server.client().chat.completions.create(
            model="scripted",
            tools=TOOLS,
            messages=[
                {"role": "user", "content": said},
                choice.message.model_dump(),
                {"role": "tool", "content": "3", "tool_call_id": call.id},
            ],
        )
        expected = '1 {"name": "add", "arguments": {"z": 1, "a": 2}} True 3'
        assert answer.choices[0].message.content == expected
        assert answer.choices[0].finish_reason == "stop"

        parts = [p.choices[0] for p in server.chat(said, tools=TOOLS, stream=True)]
        assert "".join(p.delta.content or "" for p in parts) == "Wait."
        (streamed,) = [c for p in parts for c in p.delta.tool_calls or []]
        assert (streamed.index, streamed.function.name) == (0, "add")
        assert json.loads(streamed.function.arguments) == {"z": 1, "a": 2}
        assert parts[-1].finish_reason == "tool_calls"
        whole = server.chat('{"name": "add", "parameters": {}}', tools=TOOLS, n=2)
        assert [len(c.message.tool_calls) for c in whole.choices] == [1, 1]
        assert whole.choices[0].message.content is None
        cut = server.chat('{"name": "add"}', tools=TOOLS, max_tokens=9).choices[0]
        assert (cut.finish_reason, cut.message.content) == ("length", '{"name": ')
    finally:
        assert server.stop() == "stopped\n"


def test_a_call_can_be_forced() -> None:
    """Whatever the model would say: the choice of the call is a constraint on its text."""
    now = {"type": "function", "function": {"name": "now", "parameters": WHERE}}
    server = Server(
        0, 2, 8, "", "{% if tools %}<|im_start|>user\nSAY {{ messages[0].content }}<|im_end|>"
        "{% endif %}",
    )  # fmt: skip
    only_now = {"type": "function", "function": {"name": "now"}}
    place = {"place": {"city": "Rome"}}
    wanted = json.dumps({"name": "now", "arguments": place})
    try:
        for choice in ("required", only_now):
            answer = server.chat(wanted, tools=[*TOOLS, now], tool_choice=choice).choices[0]
            assert (answer.finish_reason, answer.message.content) == ("tool_calls", None)
            (call,) = answer.message.tool_calls
            assert (call.function.name, json.loads(call.function.arguments)) == ("now", place)
        # A text that is no call, and calls of other functions or with other arguments.
        for said in ("hello", '{"name": "add", "arguments": {}}', wanted.replace("city", "town")):
            (answer,) = server.chat(said, tools=[*TOOLS, now], tool_choice=only_now).choices
            (call,) = answer.message.tool_calls
            assert call.function.name == "now"
            assert list(json.loads(call.function.arguments)["place"]) == ["city"]
        parts = [
            p.choices[0]
            for p in server.chat(wanted, tools=[now], tool_choice="required", stream=True)
        ]
        (streamed,) = [c for p in parts for c in p.delta.tool_calls or []]
        assert json.loads(streamed.function.arguments) == place
        assert parts[-1].finish_reason == "tool_calls"
        odd = {"name": "f", "parameters": {"properties": {"a": {"pattern": "(?=a)"}}}}
        with pytest.raises(openai.BadRequestError, match="'tools': the format of the answer"):
            server.chat("", tools=[{"type": "function", "function": odd}], tool_choice="required")
        with pytest.raises(openai.BadRequestError, match="no function 'then' in 'tools'"):
            only_then = {"type": "function", "function": {"name": "then"}}
            server.chat("", tools=TOOLS, tool_choice=only_then)
    finally:
        assert server.stop() == "stopped\n"


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
    # A text that was held back comes with the token that ends the answer, of which nothing is told.
    for stream in (False, True):
        answer = server.chat("SAY one STO", logprobs=True, stop="STOP", stream=stream)
        choices = [p.choices[0] for p in answer] if stream else [answer.choices[0]]
        told = [e.token for c in choices if c.logprobs for e in c.logprobs.content]
        assert "".join(told) == "one STO" and "" not in told


def test_templates_get_variables_and_results_without_tools() -> None:
    server = Server(
        0, 2, 8, "", "<|im_start|>user\nSAY {{ style }}{{ messages[-1].reasoning_content }}"
        "{% for m in messages if m.role == 'tool' or tools %}{{ m.content }}{% endfor %}<|im_end|>",
    )  # fmt: skip
    try:
        variables = {"chat_template_kwargs": {"style": "plain", "messages": []}}
        answer = server.chat("x", extra_body=variables)
        assert answer.choices[0].message.content == "plain"
        call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
        messages: list[Any] = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "3", "tool_call_id": "1"},
        ]
        client = server.client()
        for more in ({}, {"tools": TOOLS, "tool_choice": "none"}):
            answer = client.chat.completions.create(model="scripted", messages=messages, **more)
            assert answer.choices[0].message.content == "3"
        thought = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
        answer = client.chat.completions.create(model="scripted", messages=[thought])
        assert answer.choices[0].message.content == "hm"
    finally:
        assert server.stop() == "stopped\n"


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


def test_prompts_outside_of_the_vocabulary_are_errors_of_the_client(server: Server) -> None:
    for path, body in {
        "/v1/completions": {"prompt": "FOREIGN"},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "FOREIGN"}]},
    }.items():
        status, answer = server.post(json.dumps(body).encode(), path)
        assert status == 400, answer
        assert "token 257, which is not in the model's vocabulary of 257" in str(answer)


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
