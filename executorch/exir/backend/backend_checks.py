"""What partitioners and backends give, checked where they give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir.backend.backend_details import PreprocessResult

_BYTES = (bytes, bytearray, memoryview)


def check_specs(where: str, compile_specs: Any) -> None:
    """TypeError unless these are compile specs: keys and bytes."""
    if not isinstance(compile_specs, (list, tuple)):
        raise TypeError(f"{where}: expected a list of CompileSpecs, found {compile_specs!r:.80}")
    for spec in compile_specs:
        if not isinstance(getattr(spec, "key", None), str):
            raise TypeError(
                f"{where}: expected a CompileSpec with a str as key, found {spec!r:.80}"
            )
        if not isinstance(getattr(spec, "value", None), _BYTES):
            raise TypeError(f"{where}: {spec.key!r}: expected bytes as value, found {spec!r:.80}")


def check_delegation(where: str, tags: Mapping[Any, Any]) -> None:
    """TypeError unless each tag has a DelegationSpec."""
    for tag, spec in tags.items():
        if not isinstance(getattr(spec, "backend_id", None), str):
            raise TypeError(
                f"{where}: partition_tags[{tag!r}]: expected a DelegationSpec, found {spec!r:.80}"
            )
        check_specs(f"{where}: partition_tags[{tag!r}]", spec.compile_specs)


def check_result(backend_id: str, result: Any) -> None:
    """TypeError for what is no result of `preprocess`."""
    where = f"{backend_id}.preprocess"
    if not isinstance(result, PreprocessResult):
        raise TypeError(f"{where}: expected a PreprocessResult, got {type(result)}")
    expected = {
        "processed_bytes": (_BYTES, "bytes"),
        "debug_handle_map": ((Mapping, type(None)), "a dict or None"),
        "data_store_output": ((NamedDataStoreOutput, type(None)), "a NamedDataStoreOutput or None"),
    }
    for name, (kinds, wanted) in expected.items():
        found = getattr(result, name)
        if not isinstance(found, kinds):
            raise TypeError(f"{where}: {name}: expected {wanted}, found {found!r:.80}")


def check_results(backend_id: str, results: Any, programs: Mapping[str, Sequence[Any]]) -> None:
    """TypeError or ValueError unless each program of each method has a result."""
    where = f"{backend_id}.preprocess_multimethod"
    if not isinstance(results, Mapping):
        raise TypeError(f"{where}: expected a dict of lists by method, found {results!r:.80}")
    for method, given in programs.items():
        found = results.get(method)
        if not isinstance(found, (list, tuple)) or len(found) != len(given):
            what = f"{len(found)}" if isinstance(found, (list, tuple)) else f"{found!r:.80}"
            raise ValueError(
                f"{where}: method {method!r}: expected a list of {len(given)} results, one for "
                f"each program, found {what}"
            )
