from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from torch.export import ExportedProgram
from torch.fx import Node

from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc
from executorch.devtools.etrecord import ETRecord, parse_etrecord
from executorch.devtools.inspector._blocks import BlockReader
from executorch.devtools.inspector._events import (
    OPERATOR_CALL,
    Event,
    EventBlock,
    MetadataParser,
    PerfData,
    TimeConverter,
    short_table,
)
from executorch.devtools.inspector._inspector_utils import TimeScale, calculate_time_scale_factor
from executorch.devtools.inspector._numeric_gap import (
    Handles,
    capture,
    edge_handles,
    exported_program_handles,
    match,
)
from executorch.devtools.inspector._operators import METHOD, edge_program, join
from executorch.devtools.inspector._same_program import refuse_another_program
from executorch.devtools.inspector.numerical_comparator import (
    L1Comparator,
    MSEComparator,
    NumericalComparatorBase,
    SNRComparator,
)

__all__ = ["Event", "EventBlock", "Inspector", "PerfData", "TimeScale"]

if TYPE_CHECKING:
    import pandas as pd  # of the tables alone: other tools read dumps without it

_EXPORTED = "exported_program"
_EDGE = ("edge_dialect_exported_program", "edge_dialect_graph_module")
_COMPARATORS = {"L1": L1Comparator, "MSE": MSEComparator, "SNR": SNRComparator}


class Inspector:
    """What a run did, read from an ETDump and joined with an ETRecord.

    etdump_path, etdump_data   the dump: exactly one of them
    etrecord                   a path or an ETRecord; gives rows operators, lines and modules
    source_time_scale, target_time_scale  of the dump's times and of the tables'
    debug_buffer_path          the file of recorded values; without it, tensors read as zeros
    delegate_metadata_parser   list of what a delegate attached to an event -> columns
    delegate_time_scale_converter  (name, time) -> time in the target scale, for delegates that
                               have a clock of their own
    reference_graph_name       the graph of `get_exported_program`
    enable_module_hierarchy    accepted; modules are always there

    `event_blocks` are the rows. Damaged files raise ValueError and name the place.
    """

    def __init__(
        self,
        etdump_path: str | None = None,
        etdump_data: bytes | None = None,
        etrecord: ETRecord | str | None = None,
        source_time_scale: TimeScale = TimeScale.NS,
        target_time_scale: TimeScale = TimeScale.MS,
        debug_buffer_path: str | None = None,
        delegate_metadata_parser: MetadataParser | None = None,
        delegate_time_scale_converter: TimeConverter | None = None,
        enable_module_hierarchy: bool = False,
        reference_graph_name: str = "edge_dialect_graph_module",
    ) -> None:
        if (etdump_path is None) == (etdump_data is None):
            raise ValueError("Expecting exactly one of etdump_path or etdump_data to be specified.")
        self._source_time_scale = source_time_scale
        self._target_time_scale = target_time_scale
        self._reference_graph_name = reference_graph_name
        self._has_values = debug_buffer_path is not None
        factor = calculate_time_scale_factor(source_time_scale, target_time_scale)
        self._etrecord = (
            parse_etrecord(etrecord) if isinstance(etrecord, (str, os.PathLike)) else etrecord
        )
        if self._etrecord is not None and not isinstance(self._etrecord, ETRecord):
            raise TypeError(f"etrecord: expected a path or an ETRecord, got {type(etrecord)}")
        dump = _read_dump(etdump_path, etdump_data)
        values = _debug_buffer(debug_buffer_path) if debug_buffer_path is not None else None
        reader = BlockReader(factor, delegate_time_scale_converter, values)
        self.event_blocks = reader.blocks(dump)
        for block in self.event_blocks:
            block.source_time_scale = source_time_scale
            block.target_time_scale = target_time_scale
            for event in block.events:
                event._delegate_metadata_parser = delegate_metadata_parser
        if self._etrecord is not None:
            join(self.event_blocks, self._etrecord)

    # ---- tables ----

    def to_dataframe(
        self, include_units: bool = True, include_delegate_debug_data: bool = False
    ) -> pd.DataFrame:
        """One row for each event; `include_delegate_debug_data` adds what delegates attached."""
        tables = [
            block.to_dataframe(include_units, include_delegate_debug_data)
            for block in self.event_blocks
        ]
        return _joined(tables)

    def allocations_to_dataframe(self) -> pd.DataFrame:
        """One row for each allocator of a block; empty if the application tracked none."""
        return _joined([block.allocations_to_dataframe() for block in self.event_blocks])

    def print_data_tabular(
        self,
        file: IO[str] | None = None,
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Print the table, to stdout by default, without its longest columns; behind it that of
        allocations, if there are any."""
        from tabulate import tabulate

        events = self._short_table(include_units, include_delegate_debug_data)
        allocations = self.allocations_to_dataframe()
        for table in (events, allocations) if len(allocations) else (events,):
            text = tabulate(table, headers="keys", tablefmt="fancy_grid")  # type: ignore[arg-type]
            print(text, file=file or sys.stdout)

    def _repr_html_(self) -> str:
        """The table of `print_data_tabular`, as notebooks show it."""
        return str(self._short_table(True, False).to_html(max_rows=200))

    def save_data_to_tsv(
        self,
        file: IO[str],
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """The same table, separated by tabs."""
        self._short_table(include_units, include_delegate_debug_data).to_csv(file, sep="\t")

    def _short_table(self, include_units: bool, include_delegate_debug_data: bool) -> pd.DataFrame:
        table = self.to_dataframe(include_units, include_delegate_debug_data)
        return short_table(table) if len(table) else table

    # ---- questions ----

    def find_total_for_module(self, module_name: str) -> float:
        """Total of the average times of operators in modules whose name contains `module_name`."""
        return sum(
            float(event.perf_data.avg)
            for block in self.event_blocks
            for event in block.events
            if event.name != OPERATOR_CALL and event.perf_data and _inside(event, module_name)
        )

    def get_exported_program(self, graph: str | None = None) -> ExportedProgram | None:
        """A program of the ETRecord: "exported_program", "edge_dialect_exported_program", or one
        that was recorded in addition, as `<name>` or `<name>/<method>`. None without it."""
        if self._etrecord is None:
            return None
        return _program(self._etrecord, graph or self._reference_graph_name)

    def get_op_list(
        self, event_block: str, show_delegated_ops: bool | None = True
    ) -> dict[str, list[Event]]:
        """Operator type -> the events that it stands behind, in blocks of that name."""
        found: dict[str, list[Event]] = {}
        for block in self.event_blocks:
            for event in block.events if block.name == event_block else ():
                if event.name != OPERATOR_CALL and (
                    show_delegated_ops or not event.is_delegated_op
                ):
                    for op_type in dict.fromkeys(event.op_types):
                        found.setdefault(op_type, []).append(event)
        return found

    def calculate_numeric_gap(
        self,
        distance: str | NumericalComparatorBase,
        disable_debug_handle_valdiation: bool = False,
        reference_graph: str | None = None,
    ) -> pd.DataFrame:
        """How far the run's intermediate values are from those of a graph, operator by operator.

        distance         "MSE", "L1", "SNR" or a comparator
        reference_graph  as in `get_exported_program`; by default the ATen program if the edge
                         program was made of it, else the edge program
        disable_debug_handle_valdiation  do not ask whether it was, nor whether the ETRecord is of
                         the program that ran
        Needs a debug buffer, and an ETRecord with representative inputs: those of the run.
        ValueError where the run and the ETRecord do not belong together.
        Columns: aot_debug_handle, aot_ops, aot_intermediate_output, runtime_ops,
        runtime_debug_handle, runtime_intermediate_output, gap, stacktraces.
        """
        comparator = _comparator(distance, self)
        record = self._etrecord
        if record is None or not self._has_values:
            missing = "an ETRecord" if record is None else "the debug buffer of the run"
            raise ValueError(f"calculate_numeric_gap needs {missing}: give it to the Inspector")
        program, handles = _reference(record, reference_graph, not disable_debug_handle_valdiation)
        inputs = record._representative_inputs
        if inputs is None:
            inputs = program.example_inputs
        values = capture(program, inputs, handles)
        events = [event for block in self.event_blocks for event in block.events]
        if not disable_debug_handle_valdiation:
            refuse_another_program(events, record)
        pairs, nodes, event_names = match(handles, values, events)
        if not pairs:
            raise ValueError(
                "calculate_numeric_gap: no value of the run has the debug handle and the shape of "
                "one of the ETRecord; they are of different programs, or the representative "
                "inputs have other shapes than those of the run"
            )
        names = {handle: [node.name for node in found] for handle, found in nodes.items()}
        table = comparator.compare(pairs, names, event_names)
        table["stacktraces"] = [_stack_traces(nodes[h]) for h in table["aot_debug_handle"]]
        return table


def _inside(event: Event, module_name: str) -> bool:
    return any(module_name in key for stack in event.module_hierarchy.values() for key in stack)


def _stack_traces(nodes: list[Node]) -> dict[str, str | None]:
    return {node.name: node.meta.get("stack_trace") for node in nodes}


def _comparator(distance: str | NumericalComparatorBase, inspector: Inspector) -> Any:
    if isinstance(distance, NumericalComparatorBase):
        if distance._inspector is None:
            distance._inspector = inspector
        return distance
    if not isinstance(distance, str):
        raise TypeError(
            f"distance: expected one of {sorted(_COMPARATORS)} or an instance of "
            f"NumericalComparatorBase, found {distance!r:.80}"
        )
    if distance.upper() not in _COMPARATORS:
        raise ValueError(f"distance: found {distance!r}, expected one of {sorted(_COMPARATORS)}")
    return _COMPARATORS[distance.upper()](inspector)


def _program(record: ETRecord, name: str) -> ExportedProgram | None:
    if name == _EXPORTED:
        return record.exported_program
    if name in _EDGE:
        return edge_program(record)
    kind, _, method = name.partition("/")
    if kind in _EDGE and isinstance(record.edge_dialect_program, Mapping):
        return record.edge_dialect_program.get(method)
    graphs = record.graph_map or {}
    return graphs.get(name) or graphs.get(f"{name}/{METHOD}")


def _reference(record: ETRecord, name: str | None, check: bool) -> tuple[ExportedProgram, Handles]:
    """The program to compare with, and the handles of its nodes."""
    if name in (None, _EXPORTED):
        handles = exported_program_handles(record, check)
        if handles is not None and record.exported_program is not None:
            return record.exported_program, handles
    if name == _EXPORTED:
        raise ValueError(
            "reference graph 'exported_program': the ETRecord has none that its edge program was "
            "made of"
        )
    program = _program(record, name or _EDGE[0])
    if program is None:
        raise ValueError(
            f"Reference graph {name!r} not found. Available options: 'exported_program', "
            f"'edge_dialect_exported_program', or one of {sorted(record.graph_map or ())}"
        )
    return program, edge_handles(program)


def _read_dump(path: str | None, data: bytes | None) -> Any:
    if path is None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"etdump_data: expected the bytes of an ETDump, got {type(data)}; a file's path is "
                "etdump_path"
            )
        return deserialize_from_etdump_flatcc(bytes(data))
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"etdump_path: expected a path, got {type(path)}")
    with open(path, "rb") as file:
        try:
            return deserialize_from_etdump_flatcc(file.read())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _debug_buffer(path: str) -> Any:
    """The file's bytes, mapped; tensors over them may be written without changing the file."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"debug_buffer_path: expected a path, got {type(path)}")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return bytearray()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    filled = [table for table in tables if len(table)]
    return pd.concat(filled or tables or [pd.DataFrame()], ignore_index=True)
