"""Kernel yamls as torchgen's objects. `kernel_yaml` describes their form; entries here have
`func`, a whole schema."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import yaml
from torchgen.gen import LineLoader, parse_native_yaml
from torchgen.model import (
    BackendMetadata,
    DispatchKey,
    FunctionSchema,
    NativeFunction,
    OperatorName,
)
from torchgen.utils import NamespaceHelper

from executorch.codegen.model import ETKernelIndex, ETKernelKey
from executorch.codegen.selection import CodegenError

ETParsedYaml = namedtuple("ETParsedYaml", ["native_functions", "et_kernel_indices"])

# What entries have that torchgen does not know.
ET_FIELDS = ["kernels", "type_alias", "dim_order_alias"]
_LINE = "__line__"  # put into every map by LineLoader


def parse_from_yaml(ei: dict[str, object]) -> dict[ETKernelKey, BackendMetadata]:
    """The kernels of an entry; none if it has no `kernels`."""
    found: dict[ETKernelKey, BackendMetadata] = {}
    types, orders = _without_lines(ei.get("type_alias")), _without_lines(ei.get("dim_order_alias"))
    for listed in _list_of_maps(ei.get("kernels") or [], "`kernels`"):
        name = listed.get("kernel_name")
        if not isinstance(name, str):
            raise CodegenError(f"{ei.get('func')}: a kernel needs a `kernel_name`, found {listed}")
        helper = NamespaceHelper.from_namespaced_entity(name, max_level=3)
        namespace = helper.get_cpp_namespace(default="at") + "::native"
        kernel = BackendMetadata(helper.entity_name, structured=False, cpp_namespace=namespace)
        arg_meta = listed.get("arg_meta")
        keys = [ETKernelKey(default=True)]
        if arg_meta is not None:
            keys = ETKernelKey.gen_from_yaml(_without_lines(arg_meta), types, orders)
        for key in keys:
            if key in found:
                raise CodegenError(
                    f"{ei.get('func')}: two kernels for {key.to_native_string()}: "
                    f"{found[key].kernel} and {kernel.kernel}"
                )
            found[key] = kernel
    return found


def parse_et_yaml_struct(es: object) -> ETKernelIndex:
    """The kernels of all entries; operators without `kernels` are left out."""
    index: dict[OperatorName, dict[ETKernelKey, BackendMetadata]] = {}
    seen = set()
    for entry in _list_of_maps(es, "a kernel yaml"):
        operator = _operator_name(entry)
        if operator in seen:
            raise CodegenError(f"{operator} is there twice")
        seen.add(operator)
        kernels = parse_from_yaml(entry)
        if kernels:
            index[operator] = kernels
    return ETKernelIndex(index)


def extract_kernel_fields(es: object) -> dict[OperatorName, dict[str, Any]]:
    """The fields of entries that torchgen does not know, for operators that have any."""
    fields: dict[OperatorName, dict[str, Any]] = {}
    for entry in _list_of_maps(es, "a kernel yaml"):
        own = {field: entry[field] for field in ET_FIELDS if entry.get(field) is not None}
        if own:
            fields.setdefault(_operator_name(entry), {}).update(own)
    return fields


def strip_et_fields(es: object) -> None:
    """Removes these fields from the entries."""
    for entry in _list_of_maps(es, "a kernel yaml"):
        for field in ET_FIELDS:
            entry.pop(field, None)


def parse_et_yaml(
    path: str,
    tags_yaml_path: str,
    ignore_keys: set[DispatchKey] | None = None,
    skip_native_fns_gen: bool = False,
) -> tuple[list[NativeFunction], dict[OperatorName, dict[str, Any]]]:
    """What torchgen makes of the entries, and the fields that it does not know."""
    entries = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=LineLoader)
    fields = extract_kernel_fields(entries)
    strip_et_fields(entries)
    parsed = parse_native_yaml(
        path,
        tags_yaml_path,
        ignore_keys,
        skip_native_fns_gen=skip_native_fns_gen,
        loaded_yaml=entries,
    )
    return parsed.native_functions, fields


def _operator_name(entry: dict[str, Any]) -> OperatorName:
    schema = entry.get("func")
    if not isinstance(schema, str):
        raise CodegenError(f"an entry needs `func`, a schema, found {schema!r}")
    helper = NamespaceHelper.from_namespaced_entity(schema, max_level=1)
    try:
        return FunctionSchema.parse(helper.entity_name).name
    except (AssertionError, ValueError, RuntimeError) as error:
        raise CodegenError(f"{schema}: not a schema: {error}") from error


def _list_of_maps(found: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise CodegenError(f"{what}: expected a list of maps, found {found!r}")
    return found


def _without_lines(found: Any) -> dict[str, Any]:
    return {key: value for key, value in (found or {}).items() if key != _LINE}
