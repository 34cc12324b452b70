"""Edge programs: the manager of one program's methods, and the functions that make it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from torch.export import ExportedProgram

from executorch.exir.backend.backend_details import copy_program
from executorch.exir.pass_manager import ExportedProgramPassManager, run_user_passes
from executorch.exir.passes.lift_constants import LiftConstants
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import copy_variant
from executorch.exir.program._options import check_edge_options
from executorch.exir.program._to_edge import to_edge_program
from executorch.exir.torch_internals import can_decompose, op_name, schema_of

if TYPE_CHECKING:
    from executorch.exir.capture._config import EdgeCompileConfig, ExecutorchBackendConfig

_T = TypeVar("_T")
Programs = ExportedProgram | dict[str, ExportedProgram]
Passes = Any  # Sequence[PassType] | Mapping[str, Sequence[PassType]] | PassManager


def _as_methods(programs: Programs) -> dict[str, ExportedProgram]:
    if isinstance(programs, ExportedProgram):
        return {"forward": programs}
    if not isinstance(programs, Mapping):
        raise TypeError(
            f"expected torch.export.ExportedProgram or a dict of them by method, got "
            f"{type(programs)}; export the module with torch.export.export(module, inputs) first"
        )
    for name, program in programs.items():
        _refuse_no_name("programs", name)
        if not isinstance(program, ExportedProgram):
            raise TypeError(
                f"method {name!r}: expected torch.export.ExportedProgram, got {type(program)}; "
                "export the module with torch.export.export first"
            )
    return dict(programs)


def _as_constants(values: dict[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise TypeError(
            f"constant_methods: expected a dict of values by method, found {values!r:.80}"
        )
    for name in values:
        _refuse_no_name("constant_methods", name)
    return dict(values)


def _refuse_no_name(where: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{where}: expected a str as a method's name, found {name!r:.80}")
    if "\0" in name or name.encode(errors="ignore").decode() != name:
        raise ValueError(
            f"{where}: {name!r:.80} is no method's name: expected UTF-8 text without a zero byte"
        )


def _default_config(config: EdgeCompileConfig | None) -> EdgeCompileConfig:
    from executorch.exir.capture._config import EdgeCompileConfig

    found = _instance(EdgeCompileConfig, "compile_config", config)
    check_edge_options(found)
    return found


def _instance(kind: type[_T], name: str, value: _T | None) -> _T:
    """`value`, or a new one for None; TypeError for another type."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected an {kind.__name__}, found {value!r:.80}")
    return value


class EdgeProgramManager:
    """The methods of one program in the edge dialect, and the constants it reports.

    Every step returns a new manager. `to_backend` edits the graphs on the way, so that afterwards
    this manager shows its results too; `copy.deepcopy` keeps a state. `to_executorch` leaves them.
    """

    def __init__(
        self,
        edge_programs: Programs,
        constant_methods: dict[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        core_aten_ops_exception_list: list[Any] | None = None,
        preserve_ops: list[Any] | None = None,
    ) -> None:
        from executorch.exir.verification.verifier import EXIREdgeDialectVerifier

        self.compile_config = _default_config(compile_config)
        self._edge_programs = _as_methods(edge_programs)
        self._config_methods = _as_constants(constant_methods)
        self._core_exceptions = core_aten_ops_exception_list
        self._preserve_ops = preserve_ops
        self._etrecord: Any = None
        verifier = EXIREdgeDialectVerifier(
            self.compile_config, False, core_aten_ops_exception_list, preserve_ops
        )
        for name, program in self._edge_programs.items():
            try:
                verifier(program)
            except Exception as error:
                raise type(error)(f"method {name!r} is no valid edge program: {error}") from error

    @classmethod
    def _verified(
        cls, edge_programs: dict[str, ExportedProgram], like: Any, config: EdgeCompileConfig
    ) -> EdgeProgramManager:
        """A manager of programs that were verified when they were made."""
        new = cls.__new__(cls)
        new.compile_config = config
        new._edge_programs = edge_programs
        new._config_methods = getattr(like, "_config_methods", like)
        new._core_exceptions = getattr(like, "_core_exceptions", None)
        new._preserve_ops = getattr(like, "_preserve_ops", None)
        new._etrecord = getattr(like, "_etrecord", None)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> EdgeProgramManager:
        """The state as it is now: graphs are copied, tensors are shared."""
        programs = {name: copy_program(program) for name, program in self._edge_programs.items()}
        return EdgeProgramManager._verified(programs, self, self.compile_config)

    @property
    def methods(self) -> set[str]:
        """Names of the methods that run a graph."""
        return set(self._edge_programs)

    @property
    def config_methods(self) -> set[str]:
        """Names of the methods that return a constant."""
        return set(self._config_methods or ())

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        if method_name not in self._edge_programs:
            raise KeyError(f"no method {method_name!r}; there are {sorted(self._edge_programs)}")
        return self._edge_programs[method_name]

    def transform(
        self, passes: Passes, compile_config: EdgeCompileConfig | None = None
    ) -> EdgeProgramManager:
        """Run passes in order over all methods, or over those a dict names; a new manager.

        A pass is an ExportPass, an ExportedProgramPassBase, or a function from graph module to
        PassResult or None. The results are verified under `compile_config` (default: as before).
        """
        if isinstance(passes, Mapping):
            _refuse_unknown_methods("transform", passes, self._edge_programs)
        config = self.compile_config
        if compile_config is not None:
            config = _default_config(compile_config)
        results = {}
        for name, program in self._edge_programs.items():
            selected = _passes_of(name, passes)
            results[name] = (
                run_user_passes(program, selected, self._verifier(config)) if selected else program
            )
        return EdgeProgramManager._verified(results, self, config)

    def to_backend(self, partitioner: Any) -> EdgeProgramManager:
        """Delegate what `partitioner` (an instance or class; or a dict per method) claims."""
        from executorch.exir.backend.backend_api import MethodProgramsPartitionerSpec, to_backend

        chosen = partitioner
        if not isinstance(partitioner, dict):
            chosen = dict.fromkeys(self._edge_programs, partitioner)
        else:
            _refuse_unknown_methods("to_backend", chosen, self._edge_programs)
        lowered = to_backend(MethodProgramsPartitionerSpec(self._edge_programs, chosen))
        return EdgeProgramManager._verified(lowered, self, self.compile_config)

    def to_executorch(
        self,
        config: ExecutorchBackendConfig | None = None,
        named_data: Mapping[str, bytes] | None = None,
    ) -> Any:
        """Plan memory and write the program: an ExecutorchProgramManager.

        named_data  bytes that the program carries under a name, such as a tokenizer's file; the
                    runtime finds them in `Program::get_named_data_map`
        """
        from executorch.exir.capture._config import ExecutorchBackendConfig
        from executorch.exir.program._executorch import to_executorch

        programs = {name: copy_program(program) for name, program in self._edge_programs.items()}
        manager = to_executorch(
            programs,
            self._config_methods,
            _instance(ExecutorchBackendConfig, "to_executorch: config", config),
            named_data or {},
            set(self.compile_config._core_aten_ops_exception_list or ()).union(
                self._core_exceptions or ()
            ),
        )
        if self._etrecord is not None:
            manager._etrecord = self._etrecord.copy()
            manager._etrecord.add_executorch_program(manager)
        return manager

    def _verifier(self, config: EdgeCompileConfig) -> type:
        from executorch.exir.verification.verifier import EXIREdgeDialectVerifier

        return EXIREdgeDialectVerifier(config, True, self._core_exceptions, self._preserve_ops)


def _transform(
    program: ExportedProgram, *passes: Any, override_verifiers: list[type] | None = None
) -> ExportedProgram:
    """`program` after `passes`, verified; the program given where nothing changed.

    override_verifiers  classes in place of the program's own, for passes that leave its dialect
    """
    for each in passes:
        if isinstance(each, (list, tuple)):
            raise AssertionError(
                f"_transform: expected passes one by one, found the list {each!r}; verifiers go "
                "into override_verifiers"
            )
    result = ExportedProgramPassManager(list(passes))(program, override_verifiers)
    return result.exported_program if result.modified else program


def lift_constant_tensor_pass(program: ExportedProgram) -> ExportedProgram:
    """Make constants that the graph reads as attributes inputs of the program, in place."""
    if program.graph_module.graph.find_nodes(op="placeholder"):
        LiftConstants()(program)
    return program


def _remove_invalid_ops_for_not_decompose(ops: list[Any]) -> list[Any]:
    """Those of `ops` that can stay whole: they neither write nor return a view."""
    return [op for op in ops if _can_stay(op)]


def _can_stay(op: Any) -> bool:
    from executorch.exir.program._decompositions import core_table

    schema = schema_of(op)
    if op.namespace == "torchao" and op_name(op) == "choose_qparams_affine":
        return True  # its schema says more than it does
    aliases = any(r.alias_info is not None for r in schema.returns)
    composite = op.namespace == "aten" and op not in core_table() and can_decompose(op)
    return not (schema.is_mutable or aliases or (composite and copy_variant(op) is not None))


def __getattr__(name: str) -> Any:
    if name == "ExecutorchProgramManager":
        from executorch.exir.program._executorch import ExecutorchProgramManager

        return ExecutorchProgramManager
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _passes_of(method: str, passes: Passes) -> Any:
    return passes.get(method, ()) if isinstance(passes, Mapping) else passes


def _new_record(methods: dict[str, ExportedProgram], manager: EdgeProgramManager) -> Any:
    from executorch.devtools.etrecord import ETRecord

    record = ETRecord()
    record.add_exported_program(methods)
    record.add_edge_dialect_program(manager)
    return record


def to_edge(
    programs: Programs,
    constant_methods: dict[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """Bring exported programs (one, or a dict method -> program) into the edge dialect.

    constant_methods  name -> value: methods of the result that return that value
    compile_config    see EdgeCompileConfig; its checks raise SpecViolationError
    generate_etrecord keep what `ExecutorchProgramManager.get_etrecord` needs
    The programs given stay as they are.
    """
    config = _default_config(compile_config)
    methods, constants = _as_methods(programs), _as_constants(constant_methods)
    edge = {name: to_edge_program(program, config) for name, program in methods.items()}
    manager = EdgeProgramManager._verified(edge, constants, config)
    if generate_etrecord:
        manager._etrecord = _new_record(methods, manager)
    return manager


def to_edge_transform_and_lower(
    programs: Programs,
    transform_passes: Passes | None = None,
    partitioner: Any = None,
    constant_methods: dict[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """`to_edge`, then `transform(transform_passes)`, then every partitioner in turn.

    partitioner  one, a list, or a dict method -> list. Operators a partitioner asks for stay
                 undecomposed until it has claimed them.
    """
    config = _default_config(compile_config)
    methods, constants = _as_methods(programs), _as_constants(constant_methods)
    if isinstance(partitioner, dict):
        _refuse_unknown_methods("to_edge_transform_and_lower: partitioner", partitioner, methods)
    partitioners = {name: _partitioners_of(name, partitioner) for name in methods}
    edge = {}
    for name, program in methods.items():
        keep: dict[Any, Any] = {}
        for each in partitioners[name]:
            program = each.transform_for_pre_decomposition(program)
            _keep_whole(keep, *each.ops_to_not_decompose(program))
        edge[name] = to_edge_program(program, config, keep)
    manager = EdgeProgramManager._verified(edge, constants, config)
    if generate_etrecord:
        manager._etrecord = _new_record(methods, manager)
    if transform_passes:
        manager = manager.transform(transform_passes)
        if generate_etrecord:
            manager._etrecord.add_extra_export_modules({"edge_after_transform": manager})
    for i in range(max(map(len, partitioners.values()), default=0)):
        turn = {name: ps[i] for name, ps in partitioners.items() if i < len(ps)}
        manager = manager.to_backend(turn)
    return manager


def _refuse_unknown_methods(where: str, given: Iterable[str], methods: Iterable[str]) -> None:
    if unknown := sorted(set(given) - set(methods), key=str):
        raise KeyError(f"{where}: no methods {unknown}; there are {sorted(methods)}")


def _partitioners_of(method: str, partitioner: Any) -> list[Any]:
    if isinstance(partitioner, dict):
        partitioner = partitioner.get(method)
    if partitioner is None:
        return []
    from executorch.exir.backend.backend_api import instance_of

    listed = partitioner if isinstance(partitioner, (list, tuple)) else [partitioner]
    return [instance_of(p) for p in listed]


def _keep_whole(keep: dict[Any, Any], ops: list[Any], wanted: Any) -> None:
    """Add what one partitioner wants whole; writing operators and views cannot stay."""
    for op in ops:
        if schema_of(op).is_mutable or copy_variant(op) is not None:
            continue
        other = keep.get(op, wanted)
        if op not in keep or other is wanted:
            keep[op] = wanted
        elif other is None or wanted is None:
            keep[op] = None
        else:
            keep[op] = lambda node, a=other, b=wanted: a(node) or b(node)
