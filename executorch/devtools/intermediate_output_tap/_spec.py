from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TapSpec:
    """What one additional output is.

    node_name, op_target, stack_trace  the node that computes the value, in the tapped program
    output_index   which of the outputs that a call returns
    reducer_name, fields  what was made of the value, and the names of its elements; none for
                   FULL_TENSOR
    module_path, module_class  the innermost module that computes the value, if it is known
    """

    node_name: str
    op_target: str
    output_index: int
    reducer_name: str
    fields: tuple[str, ...]
    stack_trace: str | None = None
    module_path: str | None = None
    module_class: str | None = None
