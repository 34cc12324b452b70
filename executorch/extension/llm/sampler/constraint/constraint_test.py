"""Texts made at random under constraints, against `re` and `jsonschema`."""

import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.built import BUILD, ROOT, needs

FOLDER = BUILD / "executorch" / "extension" / "llm" / "sampler" / "constraint"
SAMPLE = FOLDER / "constraint_sample"
VOCABULARY = ROOT / "examples" / "nanogpt" / "vocab.json"
GPT2 = ROOT.parent / "shared" / "data" / "gpt2_vocab.json"
pytestmark = needs(SAMPLE)


def byte_of_character() -> dict[str, int]:
    """The alphabet in which vocabularies of byte pairs spell bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    table = {chr(b): b for b in printable}
    return table | {chr(256 + i): b for i, b in enumerate(others)}


def write_vocabulary(source: Path, path: Path) -> Path:
    table = byte_of_character()
    tokens = sorted(json.loads(source.read_text()).items(), key=lambda item: item[1])
    lines = [
        "" if text == "<|endoftext|>" else bytes(table[c] for c in text).hex() for text, _ in tokens
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vocabulary(VOCABULARY, tmp_path_factory.mktemp("constraint") / "vocabulary")


def sample(vocabulary: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run(
        [SAMPLE, vocabulary], input=lines, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(jobs)
    for job, answer in zip(jobs, answers, strict=True):
        assert "failure" not in answer, (job, answer)
    return answers


def complete_texts(vocabulary: Path, jobs: list[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    """The texts that came to an end, each with the number of its job."""
    for i, answer in enumerate(sample(vocabulary, jobs)):
        assert "error" not in answer, (jobs[i], answer)
        for text, complete in zip(answer["texts"], answer["complete"], strict=True):
            if complete:
                yield i, text


class Schemas:
    """Schemas at random, of what is supported, and documents that are valid under them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = ["a", "ab", "name", "é", 'quo"te', "x_1", "b/c", "~"]

    def schema(self, depth: int = 0) -> Any:
        kinds = ["null", "boolean", "integer", "number", "string", "enum", "const", "format"]
        if depth < 3:
            kinds += ["array", "tuple", "object", "object", "map", "anyOf", "oneOf", "allOf"]
            kinds += ["any"] if depth else []
        return getattr(self, "make_" + self.random.choice(kinds))(depth)

    def make_null(self, _: int) -> Any:
        return {"type": "null", "description": "nothing"}

    def make_boolean(self, _: int) -> Any:
        return {"type": "boolean"}

    def make_any(self, _: int) -> Any:
        return self.random.choice([True, {}, {"title": "anything"}])

    def make_integer(self, _: int) -> Any:
        schema: dict[str, Any] = {"type": "integer"}
        if self.random.random() < 0.6:
            schema["minimum"] = self.random.randint(-2000, 50)
        if self.random.random() < 0.6:
            schema["exclusiveMaximum"] = self.random.randint(51, 12345)
        return schema

    def make_number(self, _: int) -> Any:
        schema: dict[str, Any] = {"type": "number"}
        if self.random.random() < 0.6:
            name = self.random.choice(["minimum", "exclusiveMinimum"])
            schema[name] = round(self.random.uniform(-50, 3), self.random.randint(0, 4))
        if self.random.random() < 0.6:
            name = self.random.choice(["maximum", "exclusiveMaximum"])
            schema[name] = round(self.random.uniform(3, 500), self.random.randint(0, 4))
        return schema

    def make_string(self, _: int) -> Any:
        schema: dict[str, Any] = {"type": "string"}
        if self.random.random() < 0.3:
            patterns = ["^[a-f]{2,4}$", "x+y", r"^\d{3}-[^a-z]", "^(foo|bar)", r"\w\.\w$", "é|€"]
            return schema | {"pattern": self.random.choice(patterns)}
        if self.random.random() < 0.5:
            schema["minLength"] = self.random.randint(0, 4)
        if self.random.random() < 0.5:
            schema["maxLength"] = self.random.randint(4, 9)
        return schema

    def make_format(self, _: int) -> Any:
        formats = ["date", "time", "date-time", "uuid", "ipv4", "email"]
        return {"type": "string", "format": self.random.choice(formats)}

    def make_enum(self, _: int) -> Any:
        values = ["a", "b\n", "ü", 3, -1.25, None, True, {"k": [1, "z"]}, []]
        return {"enum": self.random.sample(values, self.random.randint(1, 4))}

    def make_const(self, _: int) -> Any:
        return {"const": self.random.choice(["only", 7, {"a": None}])}

    def make_array(self, depth: int) -> Any:
        schema: dict[str, Any] = {"type": "array", "items": self.schema(depth + 1)}
        if self.random.random() < 0.5:
            schema["minItems"] = self.random.randint(0, 2)
        if self.random.random() < 0.5:
            schema["maxItems"] = self.random.randint(2, 4)
        return schema

    def make_tuple(self, depth: int) -> Any:
        prefix = [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]
        last = self.random.choice([False, self.schema(depth + 1)])
        return {"type": "array", "prefixItems": prefix, "items": last, "minItems": 1}

    def make_object(self, depth: int) -> Any:
        names = self.random.sample(self.names, self.random.randint(1, 4))
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.schema(depth + 1) for name in names},
            "required": self.random.sample(names, self.random.randint(0, len(names))),
        }
        if self.random.random() < 0.7:
            schema["additionalProperties"] = self.random.choice([False, self.schema(depth + 2)])
        return schema

    def make_map(self, depth: int) -> Any:
        return {"type": "object", "additionalProperties": self.schema(depth + 1)}

    def make_anyOf(self, depth: int) -> Any:
        return {"anyOf": [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]}

    def make_oneOf(self, depth: int) -> Any:
        return {
            "oneOf": [
                {"type": ["string", "null"]},
                self.make_integer(depth),
                {
                    "type": "object",
                    "properties": {"k": {"const": 1}, "v": self.schema(depth + 1)},
                    "required": ["k"],
                },
                {"type": "object", "properties": {"k": {"enum": [2, 3]}}, "required": ["k", "z"]},
            ]
        }

    def make_allOf(self, depth: int) -> Any:
        return {
            "allOf": [
                {"type": "object", "properties": {"a": self.schema(depth + 1)}, "required": ["a"]},
                {"properties": {"b": self.make_integer(depth)}},
            ]
        }


def is_valid(schema: Any, document: Any) -> bool:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    return validator.is_valid(document)


def test_texts_are_valid_under_their_schemas(vocabulary: Path) -> None:
    schemas = [Schemas(seed).schema() for seed in range(300)]
    jobs = [
        {"type": "json_schema", "text": json.dumps(s), "n_texts": 6, "max_tokens": 120, "seed": i}
        for i, s in enumerate(schemas)
    ]
    made = list(complete_texts(vocabulary, jobs))
    assert len(made) > 1200
    for i, text in made:
        assert is_valid(schemas[i], json.loads(text)), (schemas[i], text)


def test_made_texts_stay_allowed_when_python_writes_them(vocabulary: Path) -> None:
    """Valid documents, in each of the ways in which Python writes JSON."""
    schemas = [Schemas(seed).schema() for seed in range(1000, 1150)]
    made = sample(
        vocabulary,
        [
            {"type": "json_schema", "text": json.dumps(s), "n_texts": 4, "max_tokens": 80}
            for s in schemas
        ],
    )
    jobs = []
    for schema, answer in zip(schemas, made, strict=True):
        documents = []
        for text, complete in zip(answer["texts"], answer["complete"], strict=True):
            # Python writes some numbers with an exponent, and JSON's keys once.
            if complete and not re.search(r"[eE.]\S*\d|\d{15}", text):
                value = json.loads(text)
                documents += [json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)]
                documents.append(json.dumps(value, separators=(",", ":")))
        documents = [d for d in documents if not re.search(r"\d[eE]|\.\d{14}|\\ud[89a-f]..\"", d)]
        jobs.append({"type": "json_schema", "text": json.dumps(schema), "documents": documents})
    assert sum(len(job["documents"]) for job in jobs) > 300
    for job, answer in zip(jobs, sample(vocabulary, jobs), strict=True):
        assert answer["refused"] == [], (job["text"], answer)


TREE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/tree",
}


def test_recursion_follows_trees(vocabulary: Path) -> None:
    tree: dict[str, Any] = {"value": 0}
    for i in range(40):
        tree = {"value": i, "children": [tree, {"value": -i, "children": []}]}
    job = {"type": "json_schema", "text": json.dumps(TREE), "n_texts": 30, "max_tokens": 200}
    (answer,) = sample(vocabulary, [job | {"documents": [json.dumps(tree), json.dumps(tree)[:-1]]}])
    assert answer["refused"] == 2 * [json.dumps(tree)[:-1]]
    for text, complete in zip(answer["texts"], answer["complete"], strict=True):
        assert not complete or is_valid(TREE, json.loads(text))


PATTERNS = [
    "abc",
    "(a|b)*c",
    r"\d{3}-\d{4}",
    r"[^\W\d]+",
    r"[\w.]+@\w+\.(com|org)",
    r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}".replace("|$", "|;"),
    r"[α-ω]{2,5}|[一-三]+",
    r"^#[0-9a-fA-F]{6}$",
    r"(?P<key>\w+)\s*=\s*(?:\"[^\"\n]*\"|-?\d+)",
    r".{0,5}\n?",
    r"[\x20-\x7e]{4,}?",
    r"(a?){20}a{20}",
    r"[^abc]x[^\s]",
]


def test_texts_match_their_expressions(vocabulary: Path) -> None:
    jobs = [
        {"type": "regex", "text": pattern, "n_texts": 40, "max_tokens": 60, "seed": i}
        for i, pattern in enumerate(PATTERNS)
    ]
    made = list(complete_texts(vocabulary, jobs))
    assert len(made) > 200
    for i, text in made:
        assert re.fullmatch(PATTERNS[i], text, re.ASCII), (PATTERNS[i], text)


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(["a", "b", "[ab]", "[^a]", r"\d", "c", ".", "é", r"\."])
        if depth < 3 and rng.random() < 0.4:
            branches = [random_pattern(rng, depth + 1) for _ in range(rng.randint(1, 3))]
            part = f"({'|'.join(branches)})"
        parts.append(part + rng.choice(["", "", "*", "+", "?", "{1,3}", "{2}", "*?"]))
    return "".join(parts)


def test_expressions_at_random_agree_with_re(vocabulary: Path) -> None:
    rng = random.Random(5)
    patterns = [random_pattern(rng) for _ in range(150)]
    texts = ["".join(rng.choices("abc1é.\n", k=rng.randint(0, 6))) for _ in range(40)]
    jobs = [
        {"type": "regex", "text": p, "n_texts": 5, "max_tokens": 30, "documents": texts}
        for p in patterns
    ]
    n_matched = 0
    for pattern, answer in zip(patterns, sample(vocabulary, jobs), strict=True):
        whole = {text for text in texts if re.fullmatch(pattern, text, re.ASCII)}
        n_matched += len(whole)
        assert set(texts) - set(answer["refused"]) == whole, pattern
        for text, complete in zip(answer["texts"], answer["complete"], strict=True):
            assert not complete or re.fullmatch(pattern, text, re.ASCII), (pattern, text)
    assert n_matched > 100


@pytest.mark.skipif(not GPT2.exists(), reason="needs GPT-2's vocabulary")
def test_with_the_vocabulary_of_gpt2(tmp_path: Path) -> None:
    vocabulary = write_vocabulary(GPT2, tmp_path / "vocabulary")
    schemas = [TREE, True, *(Schemas(seed).schema() for seed in range(20))]
    jobs = [
        {"type": "json_schema", "text": json.dumps(s), "n_texts": 5, "max_tokens": 100}
        for s in schemas
    ]
    for i, text in complete_texts(vocabulary, jobs):
        assert is_valid(schemas[i], json.loads(text)), (schemas[i], text)
