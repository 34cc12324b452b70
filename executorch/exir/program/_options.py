"""What users may give as options of `to_edge` and `to_executorch`: TypeError for other types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from executorch.exir.capture._config import EdgeCompileConfig, ExecutorchBackendConfig
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig


def check_edge_options(config: EdgeCompileConfig) -> None:
    _check_switches(config)
    for name in ("_core_aten_ops_exception_list", "preserve_ops"):
        given = getattr(config, name)
        wanted = "a list of operators with their overloads, such as torch.ops.aten.relu.default"
        if given is None:
            continue
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise _unexpected(config, name, wanted, given)
        for op in given:
            if overload_of(op) is None:
                raise _unexpected(config, name, wanted, op)


def check_backend_options(config: ExecutorchBackendConfig) -> None:
    _check_switches(config)
    choice = config.external_constants
    if choice is not None and not isinstance(choice, (bool, int)) and not callable(choice):
        wanted = "True, False or a function from a node to the name of a file"
        raise _unexpected(config, "external_constants", wanted, choice)
    for name in ("memory_planning_pass", "sym_shape_eval_pass", "to_out_var_pass"):
        given = getattr(config, name)
        by_method = isinstance(given, Mapping) and name != "to_out_var_pass"
        for each in given.values() if by_method else (given,):
            if isinstance(each, type) or not (callable(each) or hasattr(each, "run")):
                raise _unexpected(config, name, "a pass", each)
    for name in ("segment_alignment", "constant_tensor_alignment", "delegate_alignment"):
        given = getattr(config, name)
        if given is not None and not isinstance(given, int):
            raise _unexpected(config, name, "a number of bytes", given)
    given = config.propagate_device_config
    for each in given.values() if isinstance(given, Mapping) else (given,):
        if each is not None and not isinstance(each, PropagateDeviceConfig):
            raise _unexpected(config, "propagate_device_config", "a PropagateDeviceConfig", each)
    given = config.reinplace_extra_ops
    if given is not None and not isinstance(given, (set, frozenset)):
        raise _unexpected(config, "reinplace_extra_ops", "a set of operators", given)


def check_named_data(named_data: Any) -> None:
    if not isinstance(named_data, Mapping):
        raise TypeError(f"named_data: expected a dict of bytes by name, found {named_data!r:.80}")
    for name, data in named_data.items():
        if not isinstance(name, str):
            raise TypeError(f"named_data: expected a str as a name, found {name!r:.80}")
        if isinstance(data, (str, int, float)) or data is None:
            raise TypeError(f"named_data: {name!r}: expected bytes, found {data!r:.80}")


def _check_switches(config: Any) -> None:
    """Options that are on or off; a text, such as "no", would be on."""
    for option in fields(config):
        given = getattr(config, option.name)
        if option.type == "bool" and not (given is None or isinstance(given, int)):
            raise _unexpected(config, option.name, "True or False", given)


def _unexpected(config: Any, name: str, wanted: str, found: Any) -> TypeError:
    return TypeError(f"{type(config).__name__}.{name}: expected {wanted}, found {found!r:.80}")
