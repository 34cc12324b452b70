"""Samples that cannot become programs, and why: what is not listed here must be exported."""

from __future__ import annotations

import re

# Operators on complex numbers that the runtime has: transforms, arithmetic, sums, products of
# matrices, casts, what moves elements.
_COMPLEX = (
    r"_fft_\w+|complex|view_as_(complex|real)_copy|_conj_copy|_conj_physical|abs|add|div|mul|neg|sub"
    r"|(alias|as_strided|detach|diagonal|expand|narrow|permute|select|slice|split|split_with_sizes"
    r"|squeeze|t|transpose|unbind|unfold|unsqueeze|view)_copy|clone|cat|flip|gather|index"
    r"|index_select|repeat|roll|stack|sum|mean|mm|bmm|addmm|linear|_to_copy"
)

# (operators, what the exporter says): the reason.
NOT_EXPORTED: dict[tuple[str, str], str] = {
    (rf"aten::(?!({_COMPLEX})(\.|$)).*", r"torch\.complex(64|128) has no kernel here"): (
        "functions of complex numbers have no kernels; the exporter says so and names the line"
    ),
    (
        rf"aten::((?!({_COMPLEX})(\.|$)).*|_fft_.*|mm.*|bmm.*|addmm.*|linear.*)",
        r"torch\.complex32 has no kernel here",
    ): "transforms and products of 32-bit ones have none in eager PyTorch either",
    (r"aten::cat\.out", r"aten\.full\.default\): torch\.complex64 has no kernel here"): (
        "without elements torch makes it a full tensor of complex numbers"
    ),
    (r"aten::repeat_interleave\.Tensor_out", r"has no upper bound"): (
        "the length of its result needs a bound that the model tells"
    ),
    (r"aten::.*", r"a complex cannot be an argument in a program"): (
        "arguments of a program are integers, floats and tensors"
    ),
}


def is_expected(name: str, error: str) -> bool:
    return any(
        re.fullmatch(operators, name) and re.search(said, error) for operators, said in NOT_EXPORTED
    )
