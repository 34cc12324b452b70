# ruff: noqa: E501
"""Chat templates in the manner of well-known families, and conversations for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_NAMES = "chatml deepseek gemma gemma3 granite llama2 llama3 mistral phi3 phi4 qwen smol zephyr"
# By name: the files of templates/, which end with a newline only where that is meant.
FAMILIES = {
    name: (Path(__file__).parent / "templates" / f"{name}.jinja").read_bytes().decode()
    for name in _NAMES.split()
}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": 'Weather of a <place> & "time"',
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "where\nit is"},
                    "unit": {"enum": ["°C", "°F", None, 1.5]},
                    "inner": {"type": "object", "properties": {"deep": {"type": "number"}}},
                },
                "required": ["place"],
            },
            "return": {"type": "string"},
        },
    },
    {"type": "function", "function": {"name": "time", "description": "", "parameters": {}}},
]


def call(**arguments: Any) -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"id": "abcdefghi", "type": "function", "function": function}


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


CONVERSATIONS: dict[str, dict[str, Any]] = {
    "one question": {"messages": [said("user", "Hi")]},
    "no prompt": {"messages": [said("user", "Hi"), said("assistant", "  Hello  ")]},
    "with system": {
        "messages": [
            said("system", " Be kind.\n"),
            said("user", "Grüße 👋 <b>&\"'"),
            said("assistant", "<think>\nwell\n</think>\n\nHello\n"),
            said("user", "\n Bye\t"),
        ],
        "add_generation_prompt": True,
        "date_string": "24 Nov 2026",
        "enable_thinking": False,
    },
    "tools": {
        "messages": [
            said("system", "Use tools."),
            said("user", "Weather?"),
            said("assistant", None, tool_calls=[call(place="Köln", n=[1, 2.0, True, None])]),
            said("tool", "sunny"),
            said("assistant", "It is sunny."),
            said("user", "Thanks"),
        ],
        "tools": TOOLS,
        "add_generation_prompt": True,
    },
    "no content": {
        "messages": [said("user", "a"), said("assistant", "", tool_calls=[call(), call(x={})])],
        "tools": TOOLS,
    },
    "pictures": {
        "messages": [
            said("system", [{"type": "text", "text": "See."}]),
            said("user", [{"type": "image"}, {"type": "text", "text": " what is it? "}]),
        ],
        "add_generation_prompt": True,
    },
    "wrong turns": {"messages": [said("assistant", "a"), said("assistant", "b")]},
    "unknown role": {"messages": [said("user", "a"), {"role": "critic", "content": "c"}]},
    "nothing": {"messages": [], "add_generation_prompt": True},
    "documents": {
        "messages": [said("developer", "d"), said("user", "q")],
        "documents": [{"title": "b", "text": "second text"}, {"title": "A", "text": "first"}],
        "add_generation_prompt": True,
    },
}

# One point of the language each.
SMALL = [
    "{{ 1 }}\n",
    "a\r\nb\rc\n\n",
    "  {% if true %}\n x\n  {% endif %}\n y",
    "{{ 'a' }}\n\n b",
    "{%- if 1 -%}  x  {%- endif -%}  y",
    "a {#- c -#} b",
    "a\n  {# c #}\n b",
    "{{- ' x ' -}} y",
    "x\n  {%+ if 1 %}y{% endif +%}\nz",
    "{% raw %}{{ x }}{% endraw %}\nz",
    "{ { {a {% set x = 1 %}}{{x}}",
    "{{ {'a': {'b': 1}}['a'] }}",
    "{{ {'a': 1}['a']}}}",
    "{{ [1, 'a', 1.0, None, True, (1,), {}] }}",
    "{{ 'it\\'s' }}{{ [\"it's\", 'q\"', '\\n\\t\\\\', '\\u00e9\\x07\\u200b'] }}",
    "{{ 1e16 }} {{ 1.5e-7 }} {{ 100.0 }} {{ 1/3 }}",
    "{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 // 2 }}",
    "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ not 1 == 2 }} {{ 1 if false }}|",
    "{{ 'a' in 'abc' and 'x' not in ['y'] }}",
    "{{ 'a' ~ 1 ~ none ~ [1] }} {{ 'ab' * 2 }} {{ [1] * 2 + [3] }} {{ (1, 2) + (3,) }}",
    "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}-{{ b }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x is even %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in [] %}x{% else %}none{% endfor %}{% for c in 'né' %}[{{ c }}]{% endfor %}",
    "{% set x = 1 %}{% for i in [1] %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{% macro f(a, b=a ~ '!') %}({{ a }}{{ b }}){% endmacro %}{{ f(1) }}{{ f(b=2, a=3) }}{{ f() }}{{ f(1, 2, 3) }}",
    "{% set x %}  a{{ 1 }} {% endset %}[{{ x }}]{% set y | trim | upper %} b {% endset %}[{{ y }}]",
    "{% set a, b = 1, 2 %}{{ a + b }}{% set c = 1, 2 %}{{ c }}",
    "{{ x }}{{ x is defined }}{{ x.y }}",
    "{{ x.y.z }}",
    "{{ {'items': 1}.items }}",
    "{{ {'items': 1}['items'] }}{{ {'keys': 1}.get('keys') }}",
    "{{ none.x }}|{{ 5['a'] }}|{{ 'abc'[9] }}|",
    "{{ 'a,b'.split(',') }}{{ ' a  b '.split() }}{{ 'a'.append }}|{{ [].append(1) }}",
    "{{ [].append }}|",
    "{{ {}.__class__ }}|",
    "{{ [3, 1, 2]|sort }}{{ ['b', 'A']|sort }}{{ ['b', 'A']|sort(case_sensitive=true, reverse=true) }}",
    "{% set g = [1, 2]|map('string') %}{{ g|first }}{{ g|list }}{{ g|list }}{{ true if g }}",
    "{{ [1]|map('abs')|length }}",
    "{{ messages|map(attribute='a')|list }}",
    "{{ '<' ~ ([1, '<b>&']|tojson|safe) ~ '>' }}{{ none|safe }}{{ x|safe }}{{ ('<x>'|safe)|replace('<', '[') }}",
    "{{ 'x'|tojson }}{{ '</a>&\\u2028\\x7f\"\\n'|tojson }}{{ 'é😀'|tojson(ensure_ascii=true) }}",
    "{{ {'b': [1, {}, []], 'a': none}|tojson(indent=2) }}{{ [1, [2]]|tojson(indent=0) }}{{ {1: 2, true: 3}|tojson }}",
    "{{ 'hello world-foo (bar)'|title }}{{ \"it's a\".title() }}{{ 'ÉA'|lower }}",
    "{{ 'a\\nb\\n\\nc'|indent(2) }}|{{ ''|indent }}|",
    "{{ '5'|int + '3.7'|int + 'x'|int(9) }}{{ '2'|float }}{{ true|int }}{{ '-4'|int|abs }}",
    "{{ range(3) | list }}{{ range(5, 0, -2)|join(',') }}",
    "{{ 10 is divisibleby 5 }}{{ 'a' is in ['a'] }}{{ 1 is not none and 2 is odd }}",
    "{% if x is defined and x.y %}1{% else %}2{% endif %}",
    "{{ 'abc'[1:] }}{{ 'abc'[::-1] }}{{ [1, 2, 3][-2:] }}{{ 'é😀b'[1] }}{{ 'é😀b'|length }}{{ (1, 2, 3)[:2] }}",
    "{{ x|default('d') }}{{ ''|default('e', true) }}{{ none|default('f') }}{{ x|d }}",
    "{{ loop }}",
    "{% break %}",
    "{% for %}",
    "{{ 'a }}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{% endfor %}",
    "{{ 08 }}",
    "{{ 1.0e }}",
    "{{ a.1 }}",
    "{{ 1 is eq 1 is eq 1 }}",
    "{{ 1 + true }}{{ -true }}{{ +false }}{{ true == 1 }}{{ [1] == [1.0] }}{{ (1,) == [1] }}",
    "{{ none < 1 }}",
    "{% if true %}\n\n  a\n{% endif %}\n\nb\n",
    "{% generation %} a {% endgeneration %}\nb",
    "{{ dict(a=1, **{}) }}",
    "{% set loop = 1 %}",
    "{{ 'a' if }}",
    "{%if 1%}a{%endif%}{{1}}{{-1}}{{- 1 -}}",
    "\n{% set x = 1 %}\n{{ x }}\n",
    "a\n\t {%- set x = 1 +%}\nb",
    "{{ '' 'a' \"b\" }}",
    "{{ '\\q\\x41\\101' }}",
]
