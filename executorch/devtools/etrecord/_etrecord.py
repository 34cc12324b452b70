from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

from torch.export import ExportedProgram

from executorch._text_enum import StrEnum
from executorch.devtools import _native
from executorch.devtools.etrecord._archive import IDENTIFIER, Reader, Writer
from executorch.devtools.progress import steps
from executorch.exir.backend.backend_details import copy_program
from executorch.exir.program import EdgeProgramManager, ExirExportedProgram

Path = str | os.PathLike[str] | BinaryIO | IO[bytes]


class ETRecordReservedFileNames(StrEnum):
    ETRECORD_IDENTIFIER = IDENTIFIER
    EXPORTED_PROGRAM = "exported_program"
    EXPORT_GRAPH_ID = "export_graph_id"
    EDGE_DIALECT_EXPORTED_PROGRAM = "edge_dialect_exported_program"
    ET_DIALECT_GRAPH_MODULE = "et_dialect_graph_module"
    DEBUG_HANDLE_MAP_NAME = "debug_handle_map"
    DELEGATE_MAP_NAME = "delegate_map"
    INSTRUCTION_ID_TO_NUM_OUTS_MAP_NAME = "instruction_id_to_num_outs_map"
    REFERENCE_OUTPUTS = "reference_outputs"
    REPRESENTATIVE_INPUTS = "representative_inputs"


_Name = ETRecordReservedFileNames
_EDGE = _Name.EDGE_DIALECT_EXPORTED_PROGRAM.value
_MAPS = {  # member of the file -> attribute
    _Name.DEBUG_HANDLE_MAP_NAME.value: "_debug_handle_map",
    _Name.DELEGATE_MAP_NAME.value: "_delegate_map",
    _Name.INSTRUCTION_ID_TO_NUM_OUTS_MAP_NAME.value: "_instruction_id_to_num_outs_map",
}


class ETRecord:
    """What connects a program with the model it was made of; graphs share the model's tensors.

    exported_program      the ATen program of `forward`, or None
    export_graph_id       what the edge graph's nodes call the ATen graph; 0 if unknown
    edge_dialect_program  the edge program before delegation: of `forward`, or a dict by method
    graph_map             more programs, by `<name>/<method>`
    _debug_handle_map     method -> instruction -> debug handle, or list of them
    _delegate_map         method -> instruction -> {"name": backend, "delegate_map": its own map}
    _instruction_id_to_num_outs_map  method -> instruction -> results of a delegate call
    _reference_outputs    method -> for every test case, its outputs
    _representative_inputs  inputs of `forward`
    Instructions are strings in records that were read from a file.
    """

    def __init__(
        self,
        exported_program: ExportedProgram | None = None,
        export_graph_id: int | None = None,
        edge_dialect_program: ExportedProgram | dict[str, ExportedProgram] | None = None,
        graph_map: dict[str, ExportedProgram] | None = None,
        _debug_handle_map: dict[Any, Any] | None = None,
        _delegate_map: dict[str, Any] | None = None,
        _instruction_id_to_num_outs_map: dict[str, Any] | None = None,
        _reference_outputs: dict[str, Any] | None = None,
        _representative_inputs: Any = None,
    ) -> None:
        self.exported_program = exported_program
        self.export_graph_id = export_graph_id
        self.edge_dialect_program = edge_dialect_program
        self.graph_map = graph_map
        self._debug_handle_map = _debug_handle_map
        self._delegate_map = _delegate_map
        self._instruction_id_to_num_outs_map = _instruction_id_to_num_outs_map
        self._reference_outputs = _reference_outputs
        self._representative_inputs = _representative_inputs

    def copy(self) -> ETRecord:
        """A record to add to; what it has already is shared."""
        new = ETRecord()
        vars(new).update(vars(self))
        return new

    # ---- contents ----

    def add_exported_program(
        self, exported_program: ExportedProgram | dict[str, ExportedProgram] | None
    ) -> None:
        """Record the ATen program, `forward`'s if there are several."""
        if self.exported_program is not None or self.export_graph_id:
            raise RuntimeError("Exported program already exists in the ETRecord.")
        if isinstance(exported_program, Mapping):
            exported_program = exported_program.get("forward")
        if exported_program is not None:
            if not isinstance(exported_program, ExportedProgram):
                raise RuntimeError(_unsupported("exported_program", exported_program))
            self.exported_program = exported_program
            self.export_graph_id = id(exported_program.graph)

    def add_edge_dialect_program(
        self, edge_dialect_program: EdgeProgramManager | ExirExportedProgram
    ) -> None:
        """Record the edge programs as they are now; later edits leave the record alone."""
        if self.edge_dialect_program is not None:
            raise RuntimeError("Edge dialect program already exists in the ETRecord.")
        programs = _edge_programs("edge_dialect_program", edge_dialect_program)
        copies = {method: copy_program(program) for method, program in programs.items()}
        single = copies.keys() == {"forward"}
        self.edge_dialect_program = copies["forward"] if single else copies

    def add_executorch_program(self, executorch_program: Any) -> None:
        """Record the maps of an ExecutorchProgram, an ExecutorchProgramManager, or what a
        BundledProgram holds, whose test cases become reference outputs and inputs."""
        if self._debug_handle_map is not None:
            raise RuntimeError("Executorch program data already exists in the ETRecord.")
        bundled = _bundled(executorch_program)
        program = executorch_program.executorch_program if bundled else executorch_program
        if not hasattr(program, "debug_handle_map"):
            raise RuntimeError(_unsupported("executorch_program", program))
        for attribute in _MAPS.values():
            setattr(self, attribute, getattr(program, attribute[1:]))
        if bundled:
            self.update_reference_outputs(executorch_program)
            self.update_representative_inputs(executorch_program)

    def add_extra_export_modules(self, extra_recorded_export_modules: dict[str, Any]) -> None:
        """Record programs of any stage: ExportedPrograms, ExirExportedPrograms or managers."""
        if not isinstance(extra_recorded_export_modules, Mapping):
            raise RuntimeError(
                _unsupported("extra_recorded_export_modules", extra_recorded_export_modules)
            )
        graphs = dict(self.graph_map or {})
        for name, programs in extra_recorded_export_modules.items():
            if name in [reserved.value for reserved in _Name]:
                raise RuntimeError(
                    f"extra_recorded_export_modules: {name!r} is a reserved name in the ETRecord"
                )
            for method, program in _edge_programs(name, programs).items():
                graphs[f"{name}/{method}"] = copy_program(program)
        self.graph_map = graphs

    def update_representative_inputs(self, representative_inputs: Any) -> None:
        """Inputs of `forward` for `Inspector.calculate_numeric_gap`: a list, or a BundledProgram,
        whose first test case is taken."""
        if _bundled(representative_inputs):
            representative_inputs = _get_representative_inputs(representative_inputs)
        self._representative_inputs = representative_inputs

    def update_reference_outputs(self, reference_outputs: Any) -> None:
        """Expected outputs: by method, of `forward` only, or a BundledProgram's."""
        if _bundled(reference_outputs):
            reference_outputs = _get_reference_outputs(reference_outputs)
        elif not isinstance(reference_outputs, Mapping):
            reference_outputs = {"forward": reference_outputs}
        self._reference_outputs = dict(reference_outputs)

    # ---- file ----

    def save(self, path: Path) -> None:
        """Write the record to a file, which then holds its old content or all of the new. Weights
        are streamed from the tensors."""
        if self.edge_dialect_program is None or self._debug_handle_map is None:
            raise RuntimeError(
                "ETRecord must contain edge dialect program and executorch program to be saved; "
                "call add_edge_dialect_program and add_executorch_program first"
            )
        programs: list[tuple[str, ExportedProgram]] = []
        if self.exported_program is not None:
            programs.append((_Name.EXPORTED_PROGRAM.value, self.exported_program))
        edge = self.edge_dialect_program
        methods = {"forward": edge} if isinstance(edge, ExportedProgram) else edge
        programs += [(f"{_EDGE}/{method}", program) for method, program in methods.items()]
        programs += (self.graph_map or {}).items()
        with _replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
            writer = Writer(archive)
            for name, program in steps(programs, "writing ETRecord"):
                writer.program(name, program)
            for name, attribute in _MAPS.items():
                one = name == _Name.INSTRUCTION_ID_TO_NUM_OUTS_MAP_NAME.value
                value = self._counted_outputs() if one else getattr(self, attribute)
                if value is not None:
                    writer.json(name, value)
            for name in (_Name.REFERENCE_OUTPUTS.value, _Name.REPRESENTATIVE_INPUTS.value):
                if getattr(self, f"_{name}") is not None:
                    writer.tensors(name, getattr(self, f"_{name}"))
            if self.export_graph_id:
                writer.json(_Name.EXPORT_GRAPH_ID.value, self.export_graph_id)

    def _counted_outputs(self) -> dict[str, dict[Any, Any]] | None:
        """The numbers of results for the file: 1 for a call of a delegate that names its
        operations. Readers expect that many results of each operation, and fail on fewer."""
        outputs, delegates = self._instruction_id_to_num_outs_map, self._delegate_map or {}
        if outputs is None:
            return None
        return {
            method: {
                number: 1
                if delegates.get(method, {}).get(number, {}).get("delegate_map")
                else count
                for number, count in counts.items()
            }
            for method, counts in outputs.items()
        }


@contextmanager
def _replacing(path: Path) -> Iterator[Any]:
    """A file that takes the place of `path` when it is complete; a file object is used as it is."""
    if not isinstance(path, (str, os.PathLike)):
        if not hasattr(path, "write"):
            raise TypeError(f"etrecord: expected a path or a binary file, got {type(path)}")
        yield path
        return
    new = _native.OutputFile(os.fsdecode(path))
    yield new
    new.keep()


def generate_etrecord(
    et_record: Path,
    edge_dialect_program: EdgeProgramManager | ExirExportedProgram,
    executorch_program: Any,
    exported_program: ExportedProgram | dict[str, ExportedProgram] | None = None,
    extra_recorded_export_modules: dict[str, Any] | None = None,
) -> None:
    """Write an ETRecord to a path or binary file.

    edge_dialect_program  a `copy.deepcopy` made before the manager was delegated or lowered
    executorch_program    an ExecutorchProgram, ExecutorchProgramManager or BundledProgram
    """
    record = ETRecord()
    record.add_exported_program(exported_program)
    record.add_edge_dialect_program(edge_dialect_program)
    record.add_executorch_program(executorch_program)
    if extra_recorded_export_modules:
        record.add_extra_export_modules(extra_recorded_export_modules)
    record.save(et_record)


def parse_etrecord(etrecord_path: str | os.PathLike[str]) -> ETRecord:
    """Read an ETRecord.

    RuntimeError for a file that is none, ValueError for a damaged one; both name the place.
    """
    with Reader(etrecord_path) as reader:
        found = {
            name: reader.program(name) for name in steps(reader.programs(), "reading ETRecord")
        }
        edge: dict[str, ExportedProgram] = {}
        graphs: dict[str, ExportedProgram] = {}
        for name, program in found.items():
            kind, _, method = name.partition("/")
            if kind == _EDGE:
                edge[method or "forward"] = program
            elif name != _Name.EXPORTED_PROGRAM.value:
                graphs[name] = program
        maps = {attribute: reader.json(name, dict) for name, attribute in _MAPS.items()}
        return ETRecord(
            found.get(_Name.EXPORTED_PROGRAM.value),
            reader.json(_Name.EXPORT_GRAPH_ID.value, int) or 0,
            edge.get("forward") if edge.keys() <= {"forward"} else edge,
            graphs,
            **maps,
            _reference_outputs=reader.tensors(_Name.REFERENCE_OUTPUTS.value),
            _representative_inputs=reader.tensors(_Name.REPRESENTATIVE_INPUTS.value),
        )


def _edge_programs(what: str, programs: Any) -> dict[str, ExportedProgram]:
    if isinstance(programs, EdgeProgramManager):
        return {method: programs.exported_program(method) for method in sorted(programs.methods)}
    if isinstance(programs, ExirExportedProgram):
        return {"forward": programs.exported_program}
    if isinstance(programs, ExportedProgram):
        return {"forward": programs}
    raise RuntimeError(_unsupported(what, programs))


def _get_reference_outputs(bundled_program: Any) -> dict[str, list[Any]]:
    """Expected outputs of a bundle's test cases by method. ValueError where a case has none."""
    found: dict[str, list[Any]] = {}
    for suite in bundled_program.method_test_suites:
        if not all(case.expected_outputs for case in suite.test_cases):
            raise ValueError(
                f"method {suite.method_name!r}: a test case has no expected outputs; a record "
                "needs them for its reference"
            )
        found[suite.method_name] = [case.expected_outputs for case in suite.test_cases]
    return found


def _get_representative_inputs(bundled_program: Any) -> Any:
    """Inputs of the first test case of `forward`; None if there is no such method."""
    suites = _suites(bundled_program)
    if "forward" not in suites:
        return None
    if not suites["forward"]:
        raise ValueError("method 'forward' has no test cases: nothing to take inputs from")
    return suites["forward"][0].inputs


def _bundled(program: Any) -> bool:
    return hasattr(program, "method_test_suites")


def _suites(bundled: Any) -> dict[str, Any]:
    return {suite.method_name: suite.test_cases for suite in bundled.method_test_suites}


def _unsupported(what: str, found: Any) -> str:
    return f"Unsupported type of {what}: {type(found)}"
