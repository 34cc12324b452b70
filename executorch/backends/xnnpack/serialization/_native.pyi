"""The payload's wire format; see payload.py, and schema.fbs for the order of fields."""

from collections.abc import Sequence

Fields = Sequence[int | float | list[int] | None]
Member = tuple[int, Fields]

def write_payload(
    values: Sequence[tuple[int, list[int], int, int, int, Member | None]],
    nodes: Sequence[tuple[Member, int, tuple[float, float] | None]],
    constants: Sequence[tuple[int, str]],
    n_externals: int,
    inputs: list[int],
    outputs: list[int],
) -> bytes: ...
def read_payload(payload: bytes) -> str: ...
def constants_offset(payload: bytes) -> int: ...
