# ruff: noqa: E501
"""Chat templates in the manner of well-known families, and conversations for them."""

from __future__ import annotations

from typing import Any

CHATML = """
{%- for message in messages -%}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""

SMOL = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou answer in few words.<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "01 Jan 2025" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- What the system says comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {{- "Functions that you can call:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time, please") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' ~ content ~ '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('There is no system here') }}{% endif %}
{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}
{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{% endfor %}
{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}
"""

GEMMA3 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("user and assistant take turns") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("what is said is of no known type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("user and assistant take turns, but for tools") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("ids of calls have nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {{- ", " if not loop.last else "]" + eos_token }}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("roles are user, assistant and tool") }}
    {%- endif %}
{%- endfor %}
"""

PHI3 = (
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}"
    "{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}"
    "{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}"
    "{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"
)

PHI4 = (
    "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and "
    "message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + "
    "'<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + "
    "message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"
)

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(is_first=false, is_tool=false, system_prompt='', is_first_sp=true) -%}
{%- for message in messages %}{%- if message['role'] == 'system' -%}
    {%- if ns.is_first_sp -%}
        {%- set ns.system_prompt = ns.system_prompt + message['content'] -%}{%- set ns.is_first_sp = false -%}
    {%- else -%}
        {%- set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] -%}
    {%- endif -%}
{%- endif -%}{%- endfor -%}
{{ bos_token }}{{ ns.system_prompt }}
{%- for message in messages -%}
    {%- if message['role'] == 'user' -%}
        {%- set ns.is_tool = false -%}{{ '<｜User｜>' + message['content'] }}
    {%- endif -%}
    {%- if message['role'] == 'assistant' and message['tool_calls'] is defined and message['tool_calls'] is not none -%}
        {%- set ns.is_tool = false -%}
        {%- for tool in message['tool_calls'] -%}
            {%- if not ns.is_first -%}
                {{ '<｜Assistant｜><｜calls｜>' + tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments'] | tojson + '\\n```' }}
                {%- set ns.is_first = true -%}
            {%- else -%}
                {{ '\\n' + tool['function']['name'] }}
            {%- endif -%}
        {%- endfor -%}{{ '<｜calls_end｜><｜end｜>' }}
    {%- elif message['role'] == 'assistant' -%}
        {%- set content = message['content'] -%}
        {%- if content is not none and '</think>' in content -%}
            {%- set content = content.split('</think>')[-1] -%}
        {%- endif -%}
        {{ '<｜Assistant｜>' + (content or '') + '<｜end｜>' }}
    {%- endif -%}
    {%- if message['role'] == 'tool' -%}
        {%- set ns.is_tool = true -%}{{ '<｜outputs｜>' ~ message['content'] ~ '<｜outputs_end｜>' }}
    {%- endif -%}
{%- endfor -%}
{% if add_generation_prompt and not ns.is_tool %}{{ '<｜Assistant｜>' }}{% endif %}"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns, please') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

GRANITE = """{#- Functions as macros, blocks that are kept, and what trainers mark. -#}
{%- macro describe(name, schema, depth=0) -%}
    {{- '  ' * depth ~ name ~ ': ' ~ schema.type | default('any') | upper }}
    {%- if schema.description is defined %} # {{ schema.description | trim | replace('\\n', ' ') }}{% endif %}
    {%- if schema.enum is defined %} in {{ schema.enum | map('tojson') | join(', ') }}{% endif %}
    {{- '\\n' }}
    {%- for key, inner in (schema.properties or {}).items() %}
        {{- describe(key, inner, depth=depth + 1) }}
    {%- endfor %}
{%- endmacro -%}
{%- set system -%}
    {%- for message in messages if message.role in ['system', 'developer'] -%}
        {{ message.content }}{{ '\\n' if not loop.last }}
    {%- endfor -%}
{%- endset -%}
{%- if system | trim %}<|system|>{{ system | trim }}
{% endif %}
{%- for tool in tools or [] %}
{{ describe(tool.function.name, tool.function.parameters) }}
{%- endfor %}
{%- for message in messages | rejectattr('role', 'in', ['system', 'developer']) %}
    {%- if message.role == 'assistant' %}
<|{{ message.role }}|>{% generation %}{{ message.content if message.content is not none else '' }}<|end|>{% endgeneration %}
    {%- else %}
<|{{ message.role | title }}|>{{ message.content }}<|end|>
    {%- endif %}
    {%- if loop.index > 20 %}{% break %}{% endif %}
{%- endfor %}
{% raw %}{{ kept as it is }}{% endraw %}
{%- if documents %}{% for d in documents | sort(attribute='title') %}{{ loop.index }}. {{ d['title'] }} {{ d.text[:5] }}...
{% endfor %}{% endif %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}
"""

FAMILIES = {
    "chatml": CHATML,
    "smol": SMOL,
    "llama2": LLAMA2,
    "llama3": LLAMA3,
    "qwen": QWEN,
    "gemma": GEMMA,
    "gemma3": GEMMA3,
    "mistral": MISTRAL,
    "phi3": PHI3,
    "phi4": PHI4,
    "deepseek": DEEPSEEK,
    "zephyr": ZEPHYR,
    "granite": GRANITE,
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
