"""Whether an ETRecord is of the program whose run an ETDump recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from executorch.devtools.etrecord import ETRecord
from executorch.devtools.inspector._events import METHOD_EVENTS, OPERATOR_CALL, Event
from executorch.devtools.inspector._operators import METHOD, entry_of_delegate

_PREFIX = "native_call_"  # of the event of a kernel
# The library XNNPACK tells of operators that it made of the payload's, with layout and type, such
# as "Convolution (NHWC, F32) IGEMM #1"; the record has the payload's, such as "Conv2d #1".
_OF_XNNPACK = re.compile(r" \([A-Z0-9, ]+\)")


def refuse_another_program(events: Iterable[Event], record: ETRecord) -> None:
    """ValueError where at least as many calls of the run differ from the record's as agree with it.
    A few differ from those of the edge program, as passes change operators."""
    calls: dict[int, list[Event]] = {}
    for event in events:
        if event.name not in (*METHOD_EVENTS, OPERATOR_CALL):
            calls.setdefault(int(event._instruction_id or 0), []).append(event)
    delegates = (record._delegate_map or {}).get(METHOD) or {}
    known = {int(number): entry for number, entry in delegates.items()}
    agreed = 0
    differences = []
    for number, call in calls.items():
        difference = _difference(call, known.get(number))
        if difference:
            differences.append(f"instruction {number}: {difference}")
        agreed += difference == ""
    if differences and len(differences) >= agreed:
        raise ValueError(
            f"the ETRecord is of another program than the ETDump: {len(differences)} of "
            f"{len(differences) + agreed} calls differ; {differences[0]}"
        )


def _difference(call: list[Event], entry: dict | None) -> str | None:  # type: ignore[type-arg]
    """How a call differs from the record's; "" where it agrees, None where nothing tells."""
    kernels = [e for e in call if str(e.name).startswith(_PREFIX)]
    if kernels:
        name = str(kernels[0].name).removeprefix(_PREFIX)
        if entry is not None:
            return f"the run called {name}, the record has a call of {entry['name']}"
        if not kernels[0].op_types:
            return None
        same = not {_bare(n) for n in name.split("+")}.isdisjoint(
            {_bare(op_type.split(".")[-2]) for op_type in kernels[0].op_types if "." in op_type}
        )
        return "" if same else f"the run called {name}, the record has {kernels[0].op_types}"
    if not any(e.is_delegated_op or e.name == "DELEGATE_CALL" for e in call):
        return None
    if entry is None:
        return "the run called a delegate, the record has none there"
    known = list(entry.get("delegate_map") or ())
    told = [e.delegate_debug_identifier for e in call if e.is_delegated_op]
    if any(_OF_XNNPACK.search(str(t)) for t in told):
        return None
    seen = {key for key in known if any(entry_of_delegate({key: key}, t) is not None for t in told)}
    if known and told and 2 * len(seen) < len(known):
        return f"the delegate told of {told[:8]}, the record of {known[:8]}"
    return ""


def _bare(name: str) -> str:
    """An operator's name without overload and the mark of one that writes in place."""
    return name.split(".")[0].rstrip("_")
