"""python -m executorch.export MODEL: export a program, and compare it with its model."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from executorch.devtools.parity.example import end_of, named
from executorch.export.progress import Step, show_progress

_QUANTIZE = ["int8", "int8-static", "int8-weights", "int4"]
_EPILOG = """\
MODEL is one of
  file.py:name, package.module:name, package.module.name
      a function without parameters that returns a model, (model, inputs) or
      (model, inputs, dynamic_shapes); a module; or a class of modules without arguments
  folder
      a model of transformers: config.json and *.safetensors (or --random-weights)
  id
      of a model in the local cache of transformers, such as gpt2; nothing is downloaded
Inputs that are not given are inferred; token ids get a dynamic length.

A model that takes token ids of a dynamic length keeps what it computed for the tokens it has seen,
so that a loop that gives all tokens so far costs one token a step, if the model is proven to be
causal. Where the proof fails the program has no such memory, and the command says why.

examples:
  python -m executorch.export model.py:example -o model.pte
  python -m executorch.export model.py:example --quantize int8 --evaluate model.py:loss --parity
  python -m executorch.export ./my-llama --quantize int4 --tokenizer ./my-llama/tokenizer.json
  python -m executorch.export ./my-llama --dtype bfloat16 --last-only

exit status: 0 exported, 1 --parity found a difference, 2 the program could not be exported
"""
_NO_CACHE = "--cache-dtype is for programs that keep keys and values"
_DTYPES = ("float32", "float16", "bfloat16")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m executorch.export",
        description="Export a model to a program; print its size, speed and quality.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="what to export, see below")
    add("-o", "--output", default="model.pte", help="the program; .pte is added to a name without "
        "it; default: %(default)s")  # fmt: skip
    add("--quantize", choices=_QUANTIZE, help="the type of weights; activations are "
        "quantized to 8 bits at run time (int8-static: by fixed scales; int8-weights: not at all); "
        "implies --backend xnnpack, but for int8-weights")  # fmt: skip
    add("--backend", choices=["xnnpack", "portable"], help="xnnpack runs the operators that it "
        "has, the runtime's own kernels run the rest; default: portable")  # fmt: skip
    add("--incremental", action=argparse.BooleanOptionalAction, default=None, help="keep keys and "
        "values of a language model inside the program; it is an error if --incremental is given "
        "and cannot be done")  # fmt: skip
    add("--dtype", choices=[*_DTYPES, "auto"], help="the type of a model of transformers, of its "
        "weights and results; auto: as it was saved; default: float32")  # fmt: skip
    add(
        "--cache-dtype",
        choices=_DTYPES,
        help="the type of kept keys and values; default: float32, or a model's narrower type",
    )
    add("--last-only", action="store_true", help="return the logits of the last position alone, "
        "which is all that generating text needs")  # fmt: skip
    add("--max-length", type=int, metavar="N", help="the most tokens of a text; default: what "
        "the model takes, at most 2048 for models of transformers")  # fmt: skip
    add("--random-weights", action="store_true", help="do not load the weights of a "
        "model of transformers")  # fmt: skip
    add("--tokenizer", metavar="FILE", help="put this file into the program, where runners find it")
    add("--evaluate", metavar="FILE:FUNCTION", help="a function that takes a callable model and "
        "returns a figure, such as a loss")  # fmt: skip
    add("--parity", action="store_true", help="then check the program against the model")
    add("--etrecord", metavar="FILE", help="write an ETRecord as well")
    add("--json", action="store_true", help="print the figures as one JSON object")
    return parser


@contextmanager
def _only_errors() -> Iterator[None]:
    """What libraries warn of is nothing that the user of a command can change."""
    root = logging.getLogger()
    level = root.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore")
        warnings.filterwarnings("default", message="not quantized: ")
        root.setLevel(logging.ERROR)
        try:
            yield
        finally:
            root.setLevel(level)


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)

    def run() -> tuple[str, int]:
        with _only_errors(), show_progress(6 if options.parity else 5) as (step, say):
            result, text, passed = _run(options, step, say)
        return json.dumps(result) if options.json else text, 0 if passed else 1

    return end_of(parser.prog, run)


def _run(options: argparse.Namespace, step: Step, say: Step) -> tuple[dict[str, Any], str, bool]:
    """The figures, their text, and whether the program is what it should be."""
    from executorch.export.sources import find_source

    options.output = _output_path(options.output)
    if options.etrecord is not None:
        _check_place("--etrecord", options.etrecord)
    if options.cache_dtype and options.incremental is False:
        raise ValueError(_NO_CACHE)
    if options.quantize and options.dtype not in (None, "float32"):
        raise ValueError(f"--dtype {options.dtype}: what --quantize makes computes in float32")
    tokenizer = _tokenizer(options.tokenizer) if options.tokenizer is not None else None
    evaluate = named(options.evaluate) if options.evaluate else None
    step(f"load {options.model}")
    source = find_source(
        options.model,
        random_weights=options.random_weights,
        max_length=options.max_length,
        last_only=options.last_only,
        dtype=options.dtype,
    )
    incremental = _incremental(options, source)
    step(f"export {options.model}")
    session, note = _export(options, source, incremental, tokenizer)
    step(f"write {options.output}")
    session.save_to_pte(options.output)
    if options.etrecord:
        session.get_etrecord().save(options.etrecord)
    step("measure")
    result, text = _figures(options, source, session, incremental, evaluate)
    text += note
    passed = True
    if options.parity:
        step("compare")
        passed = _compare(options, source, session, incremental, result, say)
        text += f"\n\n{result.pop('parity_text')}"
    return result, text, passed


def _output_path(name: str) -> str:
    """The name of the program's file, checked before the work that leads to it."""
    is_whole = not name or name.endswith((".pte", "/"))
    return _check_place("--output", name, "" if is_whole else ".pte")


def _check_place(option: str, name: str, suffix: str = "") -> str:
    """`name` with `suffix`, where a file can be written. ValueError if it names none."""
    if not name:
        raise ValueError(f"{option} is empty, expected the name of a file")
    path = Path(name + suffix)
    if not path.resolve().parent.is_dir():
        raise ValueError(f"{option} {name}: there is no folder {path.resolve().parent}")
    if path.is_dir() or name.endswith("/"):
        raise ValueError(f"{option} {name}: {path} is a folder, expected a file")
    return str(path)


def _tokenizer(name: str) -> dict[str, bytes]:
    """What the program carries of the tokenizer, which runners must be able to read."""
    from executorch.extension.llm.packaging import tokenizer_data
    from executorch.extension.llm.tokenizers import load_bytes

    data = tokenizer_data(name)
    try:
        load_bytes(
            data["tokenizer"],
            merges=data.get("tokenizer_merges", b""),
            config=data.get("tokenizer_config", b""),
        )
    except ValueError as error:
        raise ValueError(f"--tokenizer {name}: {error}") from error
    return data


def _incremental(options: argparse.Namespace, source: Any) -> Any:
    """The step that makes the program remember tokens, or None."""
    if options.incremental is None and not source.takes_tokens or options.incremental is False:
        if options.cache_dtype:
            raise ValueError(_NO_CACHE)
        return None
    import torch

    from executorch.export.incremental import MakeIncremental

    dtype = getattr(torch, options.cache_dtype or "float32")
    return MakeIncremental(bool(options.incremental), dtype)


def _export(
    options: argparse.Namespace, source: Any, incremental: Any, tokenizer: dict[str, bytes] | None
) -> tuple[Any, str]:
    """The session, and what the user should know of its program."""
    from executorch.export import export
    from executorch.export.export import ready_made, with_transform
    from executorch.export.sources import set_longest

    recipe = ready_made(options.quantize, options.backend)
    if incremental is not None:
        recipe = with_transform(recipe, incremental)

    def exported() -> Any:
        return export(
            source.model,
            source.inputs,
            recipe,
            dynamic_shapes=source.shapes,
            constant_methods=source.constant_methods or None,
            generate_etrecord=options.etrecord is not None,
            named_data=tokenizer,
        )

    try:
        return exported(), ""
    except RuntimeError as error:
        longest = source.constant_methods.get("get_max_seq_len")
        # How torch.export says that it took this length for another one than all shorter.
        if longest is None or f".size()[1] != {longest}." not in str(error):
            _explain_fixed_length(options.model, error, longest)
            raise
        why = (
            f"torch.export cannot take a text of {longest} tokens and shorter ones in one program, "
            f"as where a model cuts a table of {longest} entries to the text, which for {longest} "
            "is no cut"
        )
        if options.max_length is not None:
            raise ValueError(
                f"{options.model}: {why}; --max-length {longest - 1} avoids it"
            ) from error
    set_longest(source, longest - 1)
    return exported(), f"\n\nIt takes {longest - 1} tokens, not {longest}: {why}."


def _explain_fixed_length(model: str, error: RuntimeError, longest: int | None) -> None:
    """Raise what to do about a model of tokens that can be exported for one length only."""
    from executorch.exir.torch_internals import line_of_fixed_size

    line = line_of_fixed_size(error) if longest is not None else None
    if line is not None:
        raise ValueError(
            f"{model}: at {line} the number of tokens is taken for a number, as where a loop goes "
            "over the tokens (state-space and other recurrent layers), so that torch.export makes "
            "a program for texts of one length; a function that returns (model, inputs) is "
            "exported so, and a module of one token that keeps its state in buffers goes on from it"
        ) from error


def _figures(
    options: argparse.Namespace, source: Any, session: Any, incremental: Any, evaluate: Any
) -> tuple[dict[str, Any], str]:
    from tabulate import tabulate

    from executorch.export.measure import measure
    from executorch.export.summary import summarize

    model = source.model if hasattr(source.model, "parameters") else source.model.module()
    figures = measure(session.get_pte_buffer(), model, source.inputs[0], evaluate=evaluate)
    summary = summarize(session, source.takes_tokens)
    result = {"output": options.output, **asdict(figures), **asdict(summary)}
    rows = figures.rows()
    if incremental is not None:
        result["incremental"] = incremental.reason is None
        result["not_incremental_because"] = incremental.reason
        if incremental.reason is None:
            result["decode_tokens_per_second"] = 1e3 / figures.run_ms
            name, program, eager = rows[2]
            rows[2] = (f"{name}, one new token", program, f"{eager}, all tokens")
    table = [*rows[:1], *summary.rows(), *rows[1:]]
    text = tabulate(table, headers=[Path(options.output).name, "program", "model"])
    if incremental is not None and incremental.reason is not None:
        text += f"\n\nIt computes all tokens in every call: {incremental.reason}"
    return result, text


def _compare(
    options: argparse.Namespace,
    source: Any,
    session: Any,
    incremental: Any,
    result: dict[str, Any],
    say: Step,
) -> bool:
    """Quantization changes the model on purpose: the gate asks whether the program is the quantized
    model, and one that remembers tokens is compared with what does not. What it remembers in fewer
    bits is quantized, too."""
    from executorch.devtools.parity import check_parity

    reference = session.get_exported_program()
    original = source.model if options.quantize else None
    if incremental is not None:
        if original is None and options.cache_dtype not in (None, "float32"):
            original = incremental.stateless.module()
        else:
            reference = incremental.stateless
    report = check_parity(
        session.get_pte_buffer(),
        reference,
        source.inputs,
        before_quantization=original,
        progress=say,
    )
    result["parity"] = json.loads(report.to_json())
    result["parity_text"] = str(report)
    return bool(report.passed)


if __name__ == "__main__":
    sys.exit(main())
