"""The kernels of a yaml by operator, in torchgen's terms. `parse` reads them."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

from torchgen.model import (
    BackendMetadata,
    DispatchKey,
    NativeFunction,
    NativeFunctionsGroup,
    OperatorName,
)

from executorch.codegen.selection import DEFAULT, CodegenError

KERNEL_KEY_VERSION = 1

ETParsedYaml = namedtuple("ETParsedYaml", ["native_functions", "kernel_index"])


class ScalarType(IntEnum):
    """Element types that kernel keys may name."""

    Byte = 0
    Char = 1
    Short = 2
    Int = 3
    Long = 4
    Float = 6
    Double = 7
    Bool = 11


@dataclass(frozen=True)
class ETKernelKeyOpArgMeta:
    """The element type and the dim order of a tensor argument."""

    arg_name: str
    dtype: str
    dim_order: tuple[int, ...]

    def to_native_string(self) -> str:
        return f"{ScalarType[self.dtype].value};{','.join(map(str, self.dim_order))}"


@dataclass(frozen=True)
class ETKernelKey:
    """The tensors that a kernel is for: those of `arg_meta`, or with `default` all."""

    arg_meta: tuple[ETKernelKeyOpArgMeta, ...] = ()
    default: bool = False
    version: int = KERNEL_KEY_VERSION

    @staticmethod
    def gen_from_yaml(
        args: dict[str, tuple[str, str]],
        type_alias_map: dict[str, list[str]],
        dim_order_alias_map: dict[str, list[int]],
    ) -> list[ETKernelKey]:
        """A key for each choice of element types.

        args  by argument, a type alias and a dim order alias
        """
        for argument, (type_alias, order_alias) in args.items():
            for alias, known in ((type_alias, type_alias_map), (order_alias, dim_order_alias_map)):
                if alias not in known:
                    raise CodegenError(f"argument {argument}: alias {alias} is not defined")
        used = list(dict.fromkeys(type_alias for type_alias, _ in args.values()))
        keys = []
        for types in product(*(_listed(type_alias_map[alias]) for alias in used)):
            type_of = dict(zip(used, types, strict=True))
            arg_meta = [
                ETKernelKeyOpArgMeta(
                    argument,
                    type_of[type_alias],
                    tuple(int(d) for d in dim_order_alias_map[order_alias]),
                )
                for argument, (type_alias, order_alias) in args.items()
            ]
            keys.append(ETKernelKey(tuple(arg_meta)))
        return keys

    def to_native_string(self) -> str:
        """As operators are registered with."""
        if self.default:
            return DEFAULT
        return f"v{self.version}/" + "|".join(arg.to_native_string() for arg in self.arg_meta)


def _listed(types: list[str] | str) -> list[str]:
    return [types] if isinstance(types, str) else types


@dataclass(frozen=True)
class ETKernelIndex:
    """The kernels of each operator, by key."""

    index: dict[OperatorName, dict[ETKernelKey, BackendMetadata]]

    def has_kernels(self, g: NativeFunction | NativeFunctionsGroup) -> bool:
        return bool(self.get_kernels(g))

    def get_kernels(
        self, g: NativeFunction | NativeFunctionsGroup
    ) -> dict[ETKernelKey, BackendMetadata]:
        """Empty for an operator without any."""
        function = g.functional if isinstance(g, NativeFunctionsGroup) else g
        return self.index.get(function.func.name, {})

    @staticmethod
    def grow_from_backend_indices(
        kernel_index: dict[OperatorName, dict[ETKernelKey, BackendMetadata]],
        backend_indices: dict[DispatchKey, dict[OperatorName, BackendMetadata]],
    ) -> None:
        """Adds torchgen's kernels, which are for all tensors, to `kernel_index`."""
        for by_operator in backend_indices.values():
            for operator, kernel in by_operator.items():
                kernel_index.setdefault(operator, {})[ETKernelKey(default=True)] = kernel

    @staticmethod
    def from_backend_indices(
        backend_indices: dict[DispatchKey, dict[OperatorName, BackendMetadata]],
    ) -> ETKernelIndex:
        return ETKernelIndex({}).grow(backend_indices)

    def grow(
        self, backend_indices: dict[DispatchKey, dict[OperatorName, BackendMetadata]]
    ) -> ETKernelIndex:
        """This index itself, with torchgen's kernels added."""
        ETKernelIndex.grow_from_backend_indices(self.index, backend_indices)
        return self

    @staticmethod
    def merge_indices(index_a: ETKernelIndex, index_b: ETKernelIndex) -> ETKernelIndex:
        """A new index of both. Where they have the same key, that of `index_b`."""
        merged = {operator: dict(kernels) for operator, kernels in index_a.index.items()}
        for operator, kernels in index_b.index.items():
            merged.setdefault(operator, {}).update(kernels)
        return ETKernelIndex(merged)
