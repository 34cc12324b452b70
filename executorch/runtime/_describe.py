"""What methods take and return, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from executorch.extension.pybindings.portable_lib import MethodMeta, TensorInfo

# By the number of schema/scalar_type.fbs.
_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "qint8",
    13: "quint8",
    14: "qint32",
    15: "bfloat16",
    16: "quint4x2",
    17: "quint2x4",
    22: "bits16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}


def describe_tensor(info: TensorInfo) -> str:
    """As `float32[8, 64]`: the largest sizes that the program was exported for."""
    dtype = _DTYPES.get(info.dtype(), f"dtype {info.dtype()}")
    return f"{dtype}[{', '.join(map(str, info.sizes()))}]"


def _values(
    count: int, kind_of: Callable[[int], str], tensor_of: Callable[[int], TensorInfo]
) -> list[str]:
    kinds = (kind_of(i) for i in range(count))
    return [
        describe_tensor(tensor_of(i)) if kind == "Tensor" else kind for i, kind in enumerate(kinds)
    ]


def inputs_of(meta: MethodMeta) -> list[str]:
    """A word for each input."""
    return _values(meta.num_inputs(), meta._input_kind, meta.input_tensor_meta)


def outputs_of(meta: MethodMeta) -> list[str]:
    """A word for each output."""
    return _values(meta.num_outputs(), meta._output_kind, meta.output_tensor_meta)


def printable(name: str) -> str:
    r"""A name of a program or file, with \xNN for bytes that are not UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def describe_method(meta: MethodMeta) -> str:
    """As `forward(float32[2, 4], Int) -> float32[2, 2]`."""
    outputs = outputs_of(meta)
    result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    return f"{printable(meta.name())}({', '.join(inputs_of(meta))}) -> {result}"


def methods_html(title: str, methods: Sequence[MethodMeta]) -> str:
    """A table with a row for each method; sizes are the largest."""
    from html import escape  # as long to import as all else here

    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{text}</td>"
            for text in (
                escape(printable(meta.name())),
                "<br>".join(map(escape, inputs_of(meta))),
                "<br>".join(map(escape, outputs_of(meta))),
            )
        )
        + "</tr>"
        for meta in methods
    )
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr><th>method</th><th>inputs</th>"
        f"<th>outputs</th></tr></thead><tbody>{rows}</tbody></table>"
    )
