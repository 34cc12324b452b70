"""What methods take and return, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    names: Sequence[str], kind_of: Callable[[int], str], tensor_of: Callable[[int], TensorInfo]
) -> list[str]:
    kinds = (kind_of(i) for i in range(len(names)))
    words = (
        describe_tensor(tensor_of(i)) if kind == "Tensor" else kind for i, kind in enumerate(kinds)
    )
    return [
        f"{printable(name)}: {word}" if name else word
        for name, word in zip(names, words, strict=True)
    ]


@dataclass(frozen=True)
class Signature:
    """What a method takes and returns. The names are those of the user's model, "" where the
    program does not say."""

    meta: MethodMeta
    input_names: Sequence[str]
    output_names: Sequence[str]

    def inputs(self) -> list[str]:
        """Words for each input, such as `tokens: int64[1, 128]`."""
        return _values(self.input_names, self.meta._input_kind, self.meta.input_tensor_meta)

    def outputs(self) -> list[str]:
        """Words for each output."""
        return _values(self.output_names, self.meta._output_kind, self.meta.output_tensor_meta)

    def __str__(self) -> str:
        """As `forward(x: float32[2, 4], Int) -> float32[2, 2]`."""
        outputs = self.outputs()
        result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        return f"{printable(self.meta.name())}({', '.join(self.inputs())}) -> {result}"


def printable(name: str) -> str:
    r"""A name of a program or file, with \xNN for bytes that are not UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def methods_html(title: str, methods: Sequence[Signature]) -> str:
    """A table with a row for each method; sizes are the largest."""
    from html import escape  # as long to import as all else here

    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{text}</td>"
            for text in (
                escape(printable(method.meta.name())),
                "<br>".join(map(escape, method.inputs())),
                "<br>".join(map(escape, method.outputs())),
            )
        )
        + "</tr>"
        for method in methods
    )
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr><th>method</th><th>inputs</th>"
        f"<th>outputs</th></tr></thead><tbody>{rows}</tbody></table>"
    )
