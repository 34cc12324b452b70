"""A sub-graph that a backend has taken, as a module."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Interpreter, Node

from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.submodules import (
    arrange_graph_outputs,
    arrange_graph_placeholders,
    create_exported_program_from_submodule,
    create_submodule_from_nodes,
)
from executorch.exir.delegate import delegate_calls, executorch_call_delegate, lowered_module_of
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.make_program import make_program
from executorch.exir.torch_internals import FakeTensor, active_fake_mode, pytree

__all__ = [
    "LoweredBackendModule",
    "arrange_graph_outputs",
    "arrange_graph_placeholders",
    "create_exported_program_from_submodule",
    "create_submodule_from_nodes",
    "executorch_call_delegate",
    "get_lowered_backend_modules",
    "get_lowered_submodules",
]


class LoweredBackendModule(torch.nn.Module):
    """What `to_backend` makes of a program. It can be called, be a part of another module that is
    exported, or be a program by itself.

    backend_id, processed_bytes, compile_specs  what the runtime gets
    original_module          the program it stands for
    named_data_store_output  the backend's named data, or None
    meta                     the backend's `debug_handle_map` and `_delegate_info_meta`
    """

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: list[CompileSpec],
        named_data_store_output: NamedDataStoreOutput | None = None,
    ) -> None:
        super().__init__()
        self._original_module = edge_program
        self._backend_id = backend_id
        self._processed_bytes = processed_bytes
        self._compile_specs = compile_specs
        self._named_data_store_output = named_data_store_output
        self.meta: dict[str, Any] = {}
        self._out_spec = edge_program.call_spec.out_spec
        # Beside the children: it stands for this module, and is none of its parts.
        object.__setattr__(self, "_for_dynamo", _ForDynamo(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        """Nothing of it changes, so copies share all."""
        copied = LoweredBackendModule(
            self._original_module,
            self._backend_id,
            self._processed_bytes,
            list(self._compile_specs),
            self._named_data_store_output,
        )
        copied.meta = dict(self.meta)
        memo[id(self)] = copied
        return copied

    @property
    def backend_id(self) -> str:
        return self._backend_id

    @property
    def processed_bytes(self) -> bytes:
        return self._processed_bytes

    @property
    def compile_specs(self) -> list[CompileSpec]:
        return self._compile_specs

    @property
    def original_module(self) -> ExportedProgram:
        return self._original_module

    @property
    def named_data_store_output(self) -> NamedDataStoreOutput | None:
        return self._named_data_store_output

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the original program computes; traced as one call."""
        if kwargs:
            raise TypeError(f"a lowered module takes positional inputs only, got {sorted(kwargs)}")
        called = self._for_dynamo if torch.compiler.is_dynamo_compiling() else self
        results = executorch_call_delegate(called, *pytree.tree_leaves(args))
        if not isinstance(results, (list, tuple)):
            results = [results]
        return pytree.tree_unflatten(list(results), self._out_spec)

    def run_original(self, *args: Any) -> Any:
        """The original program's results for flat inputs: one, or a list of them. Buffers that it
        owns and mutates change, as they do at run time."""
        program = self._original_module
        given = iter(args)
        inputs = [
            next(given) if spec.kind is InputKind.USER_INPUT else _stored(program, spec)
            for spec in program.graph_signature.input_specs
        ]
        results = Interpreter(program.graph_module).run(*inputs, enable_io_processing=False)
        returned = []
        for spec, value in zip(program.graph_signature.output_specs, results, strict=True):
            if spec.kind is OutputKind.BUFFER_MUTATION:
                with torch.no_grad():
                    _stored(program, spec).copy_(value)
            else:
                returned.append(value)
        return returned[0] if len(returned) == 1 and not self._lists_results() else returned

    def _lists_results(self) -> bool:
        """Whether the program's output is a list, as that of an extracted sub-graph is."""
        return isinstance(self._original_module.graph_module.graph.output_node().args[0], list)

    def exported_program(self) -> ExportedProgram:
        """A program that consists of one call of this module."""
        original = self._original_module
        graph = Graph()
        inputs: list[Node] = []
        by_name = {n.name: n for n in original.graph.find_nodes(op="placeholder")}
        for spec in original.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                node = graph.placeholder(spec.arg.name)  # type: ignore[union-attr]
                node.meta = dict(by_name[spec.arg.name].meta)  # type: ignore[union-attr]
                inputs.append(node)
        module = graph.get_attr("lowered_module_0")
        call = graph.call_function(executorch_call_delegate, (module, *inputs))
        output_specs = user_outputs(original)
        results = []
        for i, spec in enumerate(output_specs):
            item = graph.call_function(operator.getitem, (call, i))
            item.meta["val"] = _value_of_output(original, spec)
            results.append(item)
        call.meta["val"] = [item.meta["val"] for item in results]
        graph.output(tuple(results))
        root = torch.nn.Module()
        root.add_module("lowered_module_0", self)
        signature = ExportGraphSignature(
            [
                InputSpec(InputKind.USER_INPUT, TensorArgument(name=node.name), None)
                for node in inputs
            ],
            [
                OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=node.name), None)
                for node in results
            ],
        )
        call_spec = original.call_spec
        return make_program(
            GraphModule(root, graph),
            signature,
            {},
            {},
            original,
            call_spec.in_spec,
            call_spec.out_spec,
        )

    def program(self, emit_stacktrace: bool = False, memory_planning: Any = None) -> Any:
        """The schema Program of one call of this module."""
        return self._manager(memory_planning, emit_stacktrace=emit_stacktrace).executorch_program

    def buffer(
        self,
        extract_delegate_segments: bool = False,
        segment_alignment: int = 128,
        constant_tensor_alignment: int | None = None,
        delegate_alignment: int | None = None,
        memory_planning: Any = None,
    ) -> bytes:
        """The .pte file of one call of this module."""
        manager = self._manager(
            memory_planning,
            extract_delegate_segments=extract_delegate_segments,
            segment_alignment=segment_alignment,
            constant_tensor_alignment=constant_tensor_alignment,
            delegate_alignment=delegate_alignment,
        )
        return manager.buffer

    def _manager(self, memory_planning: Any, **options: Any) -> Any:
        from executorch.exir.capture._config import ExecutorchBackendConfig
        from executorch.exir.program._executorch import to_executorch

        config = ExecutorchBackendConfig(**options)
        if memory_planning is not None:
            config.memory_planning_pass = memory_planning
        program = self.exported_program()
        return to_executorch({"forward": program}, None, config)


class _ForDynamo(torch.nn.Module):
    """A lowered module as Dynamo wants to see it, which runs `original_module.module()` on what
    the call has: flat inputs, and flat results. The call that is traced names `lowered`."""

    def __init__(self, lowered: LoweredBackendModule) -> None:
        super().__init__()
        self.lowered: LoweredBackendModule
        object.__setattr__(self, "lowered", lowered)

    @property
    def original_module(self) -> _ForDynamo:
        return self

    def module(self) -> Any:
        return self.run_original

    def run_original(self, *args: Any) -> Any:
        return self.lowered.run_original(*args)


def _stored(program: ExportedProgram, spec: Any) -> torch.Tensor:
    store = program.state_dict if spec.target in program.state_dict else program.constants
    tensor: torch.Tensor = store[spec.target]
    mode = active_fake_mode()
    if mode is None or isinstance(tensor, FakeTensor):
        return tensor
    return mode.from_tensor(tensor, static_shapes=True)


def user_outputs(program: ExportedProgram) -> list[OutputSpec]:
    """The outputs that a call returns, buffers that it keeps not among them."""
    return [
        s for s in program.graph_signature.output_specs if s.kind is not OutputKind.BUFFER_MUTATION
    ]


def _value_of_output(program: ExportedProgram, spec: OutputSpec) -> Any:
    for given, node in zip(
        program.graph_signature.output_specs,
        program.graph.output_node().args[0],  # type: ignore[arg-type]
        strict=True,
    ):
        if given is spec:
            return node.meta["val"] if isinstance(node, Node) else node
    raise ValueError(f"{spec} is no output of the program")


def get_lowered_submodules(
    graph_module: GraphModule,
) -> list[tuple[str, LoweredBackendModule, Node]]:
    """(attribute, lowered module, get_attr node) of all delegate calls of the graph, in order."""
    return [
        (str(call.args[0].target), lowered_module_of(call, graph_module), call.args[0])  # type: ignore
        for call in delegate_calls(graph_module.graph)
    ]


def get_lowered_backend_modules(graph_module: GraphModule) -> list[LoweredBackendModule]:
    """The lowered modules that the graph calls, in order."""
    return [module for _, module, _ in get_lowered_submodules(graph_module)]


def named_data_of(programs: Any) -> NamedDataStoreOutput | None:
    """The named data of all lowered modules of the programs, in one store; None without any."""
    store = NamedDataStore()
    found = False
    for program in programs:
        for gm in all_graph_modules(program.graph_module):
            for module in get_lowered_backend_modules(gm):
                data = getattr(module, "named_data_store_output", None)
                if data is not None:
                    store.merge_named_data_store(data)
                    found = True
    return store.get_named_data_store_output() if found else None
