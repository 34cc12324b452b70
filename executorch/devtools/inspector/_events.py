"""Rows of the Inspector, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from executorch.devtools.inspector._inspector_utils import TimeScale

if TYPE_CHECKING:
    import pandas as pd

METHOD_EVENTS = ("Method::init", "Program::load_method", "Method::execute", "Method::step")
# A kernel has an event of its own name inside this one, with the same values.
OPERATOR_CALL = "OPERATOR_CALL"

MetadataParser = Callable[[list[Any]], dict[str, Any]]
TimeConverter = Callable[[int | str, int | float], int | float]

_STATISTICS = ("p10", "p50", "p90", "avg", "min", "max")
_COLUMNS = (
    "event_name",
    "raw",
    *_STATISTICS,
    "op_types",
    "delegate_debug_identifier",
    "stack_traces",
    "module_hierarchy",
    "is_delegated_op",
    "delegate_backend_name",
    "debug_data",
    "start_time",
)
_LONG_COLUMNS = (
    "raw",
    "delegate_debug_identifier",
    "stack_traces",
    "module_hierarchy",
    "debug_data",
)


@dataclass
class PerfData:
    """Durations of one event, one for every time it happened, in the target time scale."""

    raw: list[float]

    @property
    def p10(self) -> float:
        return self._percentile(10)

    @property
    def p50(self) -> float:
        return self._percentile(50)

    @property
    def p90(self) -> float:
        return self._percentile(90)

    @property
    def avg(self) -> float:
        return self.raw[0] if len(self.raw) == 1 else float(np.mean(self.raw))

    @property
    def min(self) -> float:
        return min(self.raw)

    @property
    def max(self) -> float:
        return max(self.raw)

    def _percentile(self, percent: int) -> float:
        return self.raw[0] if len(self.raw) == 1 else float(np.percentile(self.raw, percent))


@dataclass
class Event:
    """What one instruction, or one operation of a delegate, did.

    name               of the runtime's event; of a delegate's operation, its identifier
    perf_data          None where only values were recorded
    op_types           edge operators behind it
    debug_handles      of those operators' nodes: one, or a list
    num_outputs        results of a delegate call; they come last in `debug_data`
    stack_traces, module_hierarchy  by `<node>_`, as the exporter noted them
    debug_data         values it worked on, if the run recorded them
    """

    name: str | None
    perf_data: PerfData | None = None
    op_types: list[str] = field(default_factory=list)
    delegate_debug_identifier: int | str | None = None
    debug_handles: int | Sequence[int] | None = None
    num_outputs: int = 1
    stack_traces: dict[str, str | None] = field(default_factory=dict)
    module_hierarchy: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_delegated_op: bool | None = None
    delegate_backend_name: str | None = None
    _delegate_debug_metadatas: list[Any] = field(default_factory=list)
    debug_data: list[Any] = field(default_factory=list)
    _instruction_id: int | None = None
    _delegate_metadata_parser: MetadataParser | None = None
    _delegate_time_scale_converter: TimeConverter | None = None
    _start_time: list[int | float] | None = None

    @property
    def start_time(self) -> list[int | float] | None:
        """In the clock of the run, not converted."""
        return self._start_time

    @property
    def raw_delegate_debug_metadatas(self) -> list[Any]:
        return self._delegate_debug_metadatas

    @property
    def delegate_debug_metadatas(self) -> list[Any] | dict[str, Any]:
        """What the parser makes of them; as they are without one."""
        if self._delegate_metadata_parser is None:
            return self._delegate_debug_metadatas
        return self._delegate_metadata_parser(self._delegate_debug_metadatas)

    def asdict(self, _units: str = "") -> dict[str, Any]:
        """Column -> value; `_units` is appended to the names of times."""
        perf = self.perf_data
        row = {name: getattr(self, name, None) for name in _COLUMNS}
        row["event_name"] = self.name
        row["raw"] = perf.raw if perf else None
        row["op_types"] = _abbreviated(self.op_types)
        named: dict[str, Any] = {}
        for name, value in row.items():
            if name in _STATISTICS:
                named[name + _units] = getattr(perf, name) if perf else None
            else:
                named[name] = value
        return named

    def to_dataframe(self, _units: str = "") -> pd.DataFrame:
        return _frame([self.asdict(_units)])

    def metadata_columns(self) -> dict[str, Any]:
        """What the delegate attached, as columns: what the parser makes of it, or itself."""
        if not self.is_delegated_op:
            return {}
        if self._delegate_metadata_parser is not None:
            return self._delegate_metadata_parser(self._delegate_debug_metadatas)
        if self._delegate_debug_metadatas:
            return {"delegate_debug_metadata": self._delegate_debug_metadatas}
        return {}


@dataclass
class EventBlock:
    """Runs of one kind that went the same way: their events, merged.

    name                  `Default` for loading, `Execute` for execution
    bundled_input_index   the test case that was the input; -1 without one
    run_output            the program's outputs, if recorded
    reference_output      of that test case, from the ETRecord; without one, the record's only one
    allocations           allocator -> bytes of each allocation, if the application tracked them
    """

    name: str
    events: list[Event] = field(default_factory=list)
    source_time_scale: TimeScale = TimeScale.NS
    target_time_scale: TimeScale = TimeScale.MS
    bundled_input_index: int | None = None
    run_output: list[Any] | None = None
    reference_output: list[Any] | None = None
    allocations: dict[str, list[int]] = field(default_factory=dict)

    def allocations_to_dataframe(self) -> pd.DataFrame:
        """One row for each allocator."""
        import pandas as pd

        rows = [
            {
                "event_block_name": self.name,
                "allocator": name,
                "allocations": len(sizes),
                "bytes": sum(sizes),
                "largest": max(sizes, default=0),
            }
            for name, sizes in self.allocations.items()
        ]
        return pd.DataFrame(rows)

    def to_dataframe(
        self, include_units: bool = False, include_delegate_debug_data: bool = False
    ) -> pd.DataFrame:
        units = f" ({self.target_time_scale.value})" if include_units else ""
        rows = []
        for event in self.events:
            row = {"event_block_name": self.name, **event.asdict(units)}
            if include_delegate_debug_data:
                row |= event.metadata_columns()
            rows.append(row)
        return _frame(rows, ["event_block_name", *Event(None).asdict(units)])


def _frame(rows: list[dict[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows may have columns of their own, which come last."""
    import pandas as pd

    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    values = {name: [row.get(name, np.nan) for row in rows] for name in names}
    typed = {name: pd.Series(column, dtype=_dtype(name)) for name, column in values.items()}
    return pd.DataFrame(typed)


def _dtype(column: str) -> type:
    """Of a column; what is no number stays what it is, None included."""
    if column == "is_delegated_op":
        return bool
    return float if column.split(" ")[0] in _STATISTICS else object


def short_table(table: pd.DataFrame) -> pd.DataFrame:
    """What is fit to print: without long columns and the doubles of kernels' events."""
    short = table.drop(columns=[c for c in _LONG_COLUMNS if c in table.columns])
    return short[short["event_name"] != OPERATOR_CALL].reset_index(drop=True)


def _abbreviated(op_types: list[str]) -> list[str] | str:
    if len(op_types) < 5:
        return op_types
    first, second, *_, last = op_types
    return f"['{first}', '{second}' ... '{last}'] ({len(op_types)} total)"
