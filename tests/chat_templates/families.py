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
    "{% set a = 1 %}{% with a = 2, b = a, (c, d) = (3, 4) %}{{ a }}{{ b }}{{ c }}{{ d }}{% set a = 5 %}{{ a }}{% endwith %}{{ a }}{{ b }}",
    "{% with %}x{% endwith %}{% with a = 1, %}{% endwith %}",
    "{% for i in range(3) %}{% with j = i %}{{ loop.index }}{% if j == 1 %}{% break %}{% endif %}{% endwith %}{% endfor %}",
    "{% macro f(a, b=2) %}<{{ a }}{{ caller() }}{{ b }}{{ caller() }}>{% endmacro %}{% call f(1) %} x {% endcall %}{% call f(b=3, a=4) -%} y {%- endcall %}",
    "{% macro f(l) %}{% for x in l %}{{ loop.index }}{{ caller(x, b=loop.last) }}{% endfor %}{% endmacro %}{% for m in [1, 2] %}{% call(x, b, c='c') f([5, 6]) %}[{{ m }}{{ loop.index }}{{ x }}{{ b }}{{ c }}]{% endcall %}{% endfor %}",
    "{% macro f() %}{{ caller() if caller else 'none' }}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}x{% endcall %}",
    "{% macro g() %}({{ caller() }}){% endmacro %}{% macro f() %}<{% call g() %}{{ caller is defined }}{% endcall %}>{% endmacro %}{% call f() %}x{% endcall %}",
    "{% macro g() %}({{ caller() }}){% endmacro %}{% macro f() %}<{% call g() %}y{% endcall %}{{ caller() }}>{% endmacro %}{% call f() %}{% call g() %}z{% endcall %}{% endcall %}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{{ caller() }}{% endcall %}",
    "{% macro f() %}{% call caller() %}in{% endcall %}{% endmacro %}{% call f() %}<{{ caller() }}>{% endcall %}",
    "{% macro f() %}{% set x = 2 %}{{ caller() }}{{ x }}{% endmacro %}{% set x = 1 %}{% call f() %}{{ x }}{% set x = 3 %}{{ x }}{% endcall %}{{ x }}",
    "{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{% call f %}y{% endcall %}",
    "{% call range(3) %}y{% endcall %}",
    "{% macro f() %}{{ caller(1) }}{% endmacro %}{% call f() %}y{% endcall %}",
    "{{ [1, 2.5, true]|sum }}{{ []|sum }}{{ [[1], [2]]|sum(start=[]) }}{{ [{'a': {'b': 1}}, {'a': {'b': 2}}]|sum('a.b', 10) }}{{ [[1, 2]]|sum(attribute=1) }}{{ x|sum }}{{ [-0.0]|sum }}",
    "{{ [1, 'a']|sum }}",
    "{{ ['a']|sum(start='') }}",
    "{{ [{}]|sum('a') }}",
    "{{ 42.55|round }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.55|round(method='ceil') }} {{ 2.5|round }}{{ 3.5|round }}{{ -2.5|round }} {{ 2.675|round(2) }} {{ 5|round }}{{ true|round }}{{ 0.5|round|int }}",
    "{{ 15|round(-1) }} {{ 25|round(-1) }} {{ -15|round(-1) }} {{ 1249|round(-2) }} {{ 50|round(-2) }} {{ 51|round(-2) }} {{ 1250.5|round(-2) }} {{ 1250.0|round(-2) }} {{ 1350.0|round(-2) }} {{ -4.0|round(-1) }} {{ 7|round(-20) }} {{ 7.0|round(-20) }}",
    "{{ 1234|round(-2, 'ceil') }} {{ 1.1|round(400) }} {{ 1e300|round(3) }} {{ 5e-324|round(323) }} {{ 1e-320|round(321) }} {{ 7|round(2, 'floor') }}",
    "{{ 'a'|round }}",
    "{{ 1|round(1, 'up') }}",
    "{{ 1|round(1.0) }}",
    "{{ '%s-%d-%5.2f|%-5s|%05d|%+d|% d|%x|%#X|%o|%e|%G|%%|%c'|format('a', 3.7, 2.345, 'b', -42, 5, 5, 255, 255, 8, 12345.678, 1e-10, 'é') }}",
    "{{ '%(a)s %(b(c))05.1f %(a)r'|format(a='x') }}",
    "{{ '%(a)s %(b)05.1f %(a).1s|%(b)-8d|'|format(a='éx', b=2.25) }}",
    "{{ '%*d|%-*d|%.*f|%.3d|%#.5x|%5s|%.0f|%08.3e|%i|%u'|format(5, 1, 4, 2, 2, 1.005, 7, 255, 'é', 0.5, -1.5, true, 9) }}",
    "{{ '%5%'|format(3) }}",
    "{{ '%ld|%+05d|%- 5d|%+s|%g|%g|%g'|format(3, 4, 5, 'x', 1e16, 0.0001, 100000.0) }}",
    "{{ 5|format }}{{ 'a%%'|format }}{{ '%s %s'|format([1], none) }}{{ '%s'|format(x) }}",
    "{{ '%s'|format }}",
    "{{ 'a'|format(1) }}",
    "{{ '%d'|format('1') }}",
    "{{ '%x'|format(1.0) }}",
    "{{ '%z'|format(1) }}",
    "{{ '%(a)s'|format(1) }}",
    "{{ '%(a)s'|format(b=1) }}",
    "{{ '%s'|format(1, a=2) }}",
    "{{ '%'|format(1) }}",
    "{{ '%*5d'|format(1, 2) }}",
    "{{ '%(a)*d'|format(a=1) }}",
]
