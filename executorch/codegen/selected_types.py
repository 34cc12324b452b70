"""Element types of a selection (DTYPE_SELECTIVE_BUILD), as C++ sees them: bit n of a set stands for
the ScalarType of number n."""

from __future__ import annotations

from executorch.codegen.selection import Selection, scalar_types

ALL = 2**64 - 1


def mask_of(selection: Selection, operator: str) -> int:
    """The types that `operator` is asked for."""
    numbers = selection.types_of(operator)
    return ALL if numbers is None else sum(1 << number for number in numbers)


def with_computed(mask: int) -> int:
    """`mask` and the types that kernels compute in for it (kernels/portable/internal/dtype.h)."""
    numbers = scalar_types()
    floats = sum(1 << numbers[name] for name in ("HALF", "FLOAT", "DOUBLE", "BFLOAT16"))
    mask |= 1 << numbers["FLOAT"]
    return mask | (1 << numbers["LONG"] if mask & ~floats else 0)


def names_of(mask: int) -> str:
    if mask == ALL:
        return "all"
    return " ".join(name for name, n in scalar_types().items() if mask >> n & 1)
