"""The payload's wire format; see payload.py, and schema.fbs for the order of fields."""

from collections.abc import Sequence

Fields = Sequence[int | float | list[int] | None]
Member = tuple[int, Fields]
# Id, type, dims, entry of constants (0: none), external id, flags, quantization.
Value = tuple[int, int, list[int], int, int, int, Member | None]
# Member of XNodeUnion, debug handle, bounds.
Node = tuple[Member, int, tuple[float, float] | None]

# By the names of kinds, in the order of their numbers from 1: the fields of nodes, with types.
NODE_FIELDS: dict[str, dict[str, str]]

def write_payload(
    values: Sequence[Value],
    nodes: Sequence[Node],
    constants: Sequence[tuple[int, int, str]],
    n_externals: int,
    inputs: list[int],
    outputs: list[int],
    version: str,
) -> bytes: ...
def read_payload(payload: bytes) -> str: ...
def constants_offset(payload: bytes) -> int: ...
