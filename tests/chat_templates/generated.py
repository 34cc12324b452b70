"""Templates at random: statements and expressions over messages, texts, lists and mappings."""

from __future__ import annotations

import random
from typing import Any

TEXTS = [
    "",
    "a",
    "User",
    " x y ",
    "<think>\nb</think>c",
    "line\r\nline\n",
    "é ü",
    "a.b,c",
    "10",
    "\t",
]
LITERALS = [
    "''",
    "'a'",
    '"x y"',
    "'\\n'",
    "' b '",
    "'</think>'",
    "'role'",
    "'\\u00e9\\x41'",
    "'%s|%5.1f'",
    "'%-3s%03d'",
    "'a' 'b'",
]
TESTS = [
    "defined",
    "none",
    "string",
    "mapping",
    "iterable",
    "number",
    "integer",
    "float",
    "boolean",
    "true",
    "false",
    "sequence",
    "undefined",
    "in ['a', 'user', 1]",
    "equalto('a')",
    "eq 1",
    "ne ''",
    "odd",
    "even",
    "divisibleby(2)",
    "lt 2",
    "ge(1)",
]
FILTERS = [
    "trim",
    "trim('a ')",
    "length",
    "count",
    "upper",
    "lower",
    "title",
    "capitalize",
    "string",
    "first",
    "last",
    "list",
    "list | length",
    "join",
    "join(', ')",
    "join('-', attribute='role')",
    "tojson",
    "tojson(indent=2)",
    "tojson(sort_keys=true)",
    "tojson(separators=(',', ':'))",
    "default('d')",
    "default('d', true)",
    "d",
    "items | list",
    "reverse | list",
    "sort",
    "unique | list",
    "replace('a', 'bb')",
    "replace('', '-')",
    "replace('e', '', 1)",
    "int",
    "float",
    "int(default=7)",
    "abs",
    "map('upper') | list",
    "map(attribute='content') | list",
    "map(attribute='x.y', default=0) | list",
    "select | list",
    "select('string') | list",
    "reject('none') | list",
    "selectattr('role', 'equalto', 'user') | list",
    "rejectattr('content') | map(attribute='role') | join('|')",
    "selectattr('content', 'in', ['', 'a']) | list | length",
    "dictsort",
    "indent",
    "indent(2, true)",
    "indent('> ', blank=true)",
    "selectattr('role')",
    "map('trim')",
    "sum",
    "sum(start=[])",
    "sum('content', 2)",
    "round",
    "round(1)",
    "round(-1)",
    "round(2, 'floor')",
    "round(method='ceil')",
    "format",
    "format(1, 'a')",
    "min",
    "max(attribute='role')",
    "batch(2) | list",
    "batch(3, 'x') | list",
    "slice(2) | list",
    "slice(3, 0) | list",
    "groupby('role')",
    "groupby('content', default='') | map('first') | list",
    "sort(attribute='role,content')",
]
METHODS = [
    "strip()",
    "lstrip()",
    "rstrip('x y')",
    "strip('\\n')",
    "split()",
    "split('a')",
    "split('</think>')[-1]",
    "split(' ', 1)",
    "rsplit('.', 1)",
    "split(None, 1)",
    "rsplit(None, 1)",
    "rsplit()",
    "splitlines()",
    "splitlines(true)",
    "upper()",
    "lower()",
    "title()",
    "capitalize()",
    "startswith('a')",
    "endswith(('c', ' '))",
    "replace('a', 'b')",
    "find('b')",
    "rfind('a')",
    "count('a')",
    "join(['x', 'y'])",
    "removeprefix('a')",
    "removesuffix('c')",
    "isdigit()",
    "get('role')",
    "get('x', 'none')",
    "keys() | list",
    "values() | list",
    "items() | list",
    "index('a')",
    "partition('a')",
    "rpartition(' ')",
    "format('a', 2)",
]


class Templates:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.n_loops = 0

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def variables(self) -> dict[str, Any]:
        r = self.random
        messages = []
        for _ in range(r.randint(0, 4)):
            content: Any = r.choice(TEXTS)
            if r.random() < 0.2:
                content = r.choice([None, [{"type": "text", "text": "t"}], {"content": "c"}, 3])
            messages.append({"role": r.choice(["system", "user", "assistant", "tool"])})
            if r.random() < 0.9:
                messages[-1]["content"] = content
        return {
            "messages": messages,
            "text": r.choice(TEXTS),
            "number": r.choice([0, 1, -3, 2.5, 1e16, 1e-5, 12345.678, True]),
            "items": r.choice(
                [[], [1, 2, 3], ["a", "B", "c"], [[1, "x"], [2, "y"]], [None, True, 1.0]]
            ),
            "table": r.choice([{}, {"role": "user", "b": 1}, {"z": [1], "a": {"k": "v'"}}]),
            "bos_token": "<s>",
            "add_generation_prompt": r.random() < 0.5,
        }

    def name(self) -> str:
        if self.n_loops and self.random.random() < 0.3:
            return "m"
        return self.choose(
            "text", "number", "items", "table", "messages", "x", "y", "bos_token", "missing"
        )

    def primary(self, depth: int) -> str:
        kind = self.random.randrange(12)
        if kind < 4:
            return self.name()
        if kind < 6:
            return self.choose(*LITERALS)
        if kind == 6:
            return self.choose("0", "1", "-1", "2", "3.5", "1e3", "true", "none", "False", "10_0")
        if kind == 7:
            first = self.choose(
                "(messages | first)", "messages[0]", "messages[-1]", "(messages[0] or {})"
            )
            return first + self.choose("", "", ".content", "['role']", ".role", ".x")
        if kind == 8 and depth:
            return f"[{self.expression(depth - 1)}, {self.expression(depth - 1)}]"
        if kind == 9 and depth:
            return f"{{'k': {self.expression(depth - 1)}, {self.choose(*LITERALS)}: 1}}"
        if kind == 10 and self.n_loops:
            return self.choose(
                "loop.index",
                "loop.index0",
                "loop.first",
                "loop.last",
                "loop.length",
                "loop.revindex",
                "loop.previtem",
                "loop.cycle('a', 'b')",
                "loop.nextitem",
            )
        return f"({self.expression(depth - 1)})" if depth else self.name()

    def postfix(self, depth: int) -> str:
        text = self.primary(depth)
        for _ in range(self.choose(0, 0, 0, 1, 1, 2)):
            kind = self.random.randrange(8)
            if kind == 0:
                text += self.choose("[0]", "[-1]", "['role']", "[5]", "['k']", "[none]")
            elif kind == 1 and not text[0].isdigit() and text[0] != "-":
                text += self.choose(
                    "[1:]", "[:-1]", "[::-1]", "[:2]", "[::2]", "[1:3]", "[-2:]", "[5:0:-2]"
                )
            elif kind == 2:
                text += self.choose(".role", ".content", ".items", ".k", ".append")
            elif kind == 3:
                text += "." + self.choose(*METHODS)
            elif kind < 7:
                text = f"({text} | {self.choose(*FILTERS)})"
        return text

    def expression(self, depth: int = 2) -> str:
        if depth <= 0:
            return self.postfix(0)
        a = self.postfix(depth)
        kind = self.random.randrange(14)
        if kind < 4:
            return a
        b = self.postfix(depth - 1)
        if kind == 4:
            return f"{a} {self.choose('+', '-', '*', '%', '//', '/', '**')} {b}"
        if kind < 7:
            return f"{a} ~ {b} ~ {self.choose(*LITERALS)}"
        if kind == 7:
            return f"{a} {self.choose('==', '!=', '<', '>=', 'in', 'not in', '<=', '>')} {b}"
        if kind == 8:
            return f"{a} {self.choose('and', 'or')} {self.choose('', 'not ')}{b}"
        if kind == 9:
            return f"({a} if {b} else {self.expression(depth - 1)})"
        if kind == 10:
            return f"{a} is {self.choose('', 'not ')}{self.choose(*TESTS)}"
        if kind == 11:
            return f"not {a} is {self.choose(*TESTS)}"
        if kind == 12:
            return f"({a} if {b})"
        return self.choose(
            "range(3) | list", "range(4, 1, -1) | join", "dict(k=1)", "dict(table, k=2).k"
        )

    def tag(self, inside: str) -> str:
        return f"{{%{self.choose('', '-', '-', '+')} {inside} {self.choose('', '-', '-', '+')}%}}"

    def blank(self) -> str:
        return self.choose(
            "",
            "",
            "\n",
            "\n    ",
            " ",
            "text",
            " t \n",
            "\n\n",
            "{# c #}",
            "{#- c -#}\n",
            "\t\n",
            "  {# x #}\n",
        )

    def statement(self, depth: int, in_loop: bool) -> str:
        kind = self.random.randrange(16)
        if kind < 5 or depth <= 0:
            return f"{{{{{self.choose('', '-')} {self.expression()} {self.choose('', '-')}}}}}"
        if kind < 7:
            text = self.tag(f"if {self.expression()}") + self.block(depth - 1, in_loop)
            if self.random.random() < 0.3:
                text += self.tag(f"elif {self.expression(1)}") + self.block(depth - 1, in_loop)
            if self.random.random() < 0.5:
                text += self.tag("else") + self.block(depth - 1, in_loop)
            return text + self.tag("endif")
        if kind < 9:
            over = self.choose(
                "messages",
                "items",
                "text",
                "range(3)",
                "table.items()",
                "messages[1:]",
                self.expression(1),
            )
            target = "k, m" if ".items()" in over else "m"
            condition = f" if {self.expression(1)}" if self.random.random() < 0.2 else ""
            text = self.tag(f"for {target} in {over}{condition}")
            self.n_loops += 1
            text += self.block(depth - 1, True)
            self.n_loops -= 1
            if self.random.random() < 0.2:
                text += self.tag("else") + self.block(depth - 1, in_loop)
            return text + self.tag("endfor")
        if kind < 11:
            return self.tag(f"set {self.choose('x', 'y', 'ns.v')} = {self.expression()}")
        if kind == 11:
            if self.random.random() < 0.4:
                inside = self.block(depth - 1, False)
                return self.tag("filter trim | upper") + inside + self.tag("endfilter")
            bars = self.choose("", " | trim", " | upper | trim")
            return self.tag(f"set y{bars}") + self.block(depth - 1, False) + self.tag("endset")
        if kind == 12:
            if in_loop:
                condition = self.tag(f"if {self.expression(1)}")
                return condition + self.tag(self.choose("break", "continue")) + self.tag("endif")
            return (
                "{% raw %} {{ raw }} {%- endraw %}\n"
                if depth % 2
                else "{%- raw -%}\n {% x %}\n  {% endraw -%} "
            )
        if kind == 13:
            assigned = self.choose("x = 1", "x = y, y = 2", f"m = {self.expression(1)}")
            return (
                self.tag(f"with {assigned}") + self.block(depth - 1, in_loop) + self.tag("endwith")
            )
        if kind == 14:
            call = f"call{self.choose('', '(x)', '(x, y=x)')} {self.choose('c', 'c', 'f')}(text)"
            return self.tag(call) + self.block(depth - 1, False) + self.tag("endcall")
        return f"{{{{ f({self.expression(1)}{self.choose('', ', b=1', ', 2', ', *[3]')}) }}}}"

    def block(self, depth: int, in_loop: bool) -> str:
        parts = [self.blank()]
        for _ in range(self.random.randint(1, 3)):
            parts += [self.statement(depth, in_loop), self.blank()]
        return "".join(parts)

    def template(self) -> str:
        macro = "{% macro f(a, b='z') %}" + self.choose(
            "{{ a }}|{{ b }}", "{{- a ~ text -}}", "{{ x }}{{ b|upper }}"
        )
        macro += "{% endmacro %}{% macro c(a) %}" + self.choose(
            "{{ caller() }}", "<{{ caller(a) }}{{ caller is defined }}>", "{{ caller(1, y=a) }}"
        )
        start = "{%- set ns = namespace(v=0) %}{% set x = 'X' %}{% set y = [1, 'b'] %}"
        return f"{macro}{{% endmacro %}}\n{start}" + self.block(2, False)
