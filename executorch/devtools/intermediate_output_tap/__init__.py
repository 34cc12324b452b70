"""Intermediate values of a program as outputs of its own, in any runtime and through delegates.

    exported, specs = tap_intermediate_outputs_(torch.export.export(model, inputs))
    expected = tree_flatten(exported.module()(*inputs))[0]
    edge = to_edge_transform_and_lower(exported, partitioner=[...])
    strip_taps_(edge)
    outputs = ...  # of edge.to_executorch(), run anywhere
    compare_aot_runtime_dataframe(specs, expected, outputs)

`tap_compare(model, inputs, [...])` is all of this. An operator `executorch_devtools::tap`, which no
backend knows, keeps each tapped value a result of the delegate that computes it; after lowering,
`strip_taps_` puts statistics of the value, or the value itself, in its place. What a delegate would
have fused over a tapped value stays apart: taps change the program that they look at.
"""

from executorch.devtools.intermediate_output_tap import custom_ops_lib
from executorch.devtools.intermediate_output_tap._convenience import (
    compare_aot_runtime_dataframe,
    tap_compare,
)
from executorch.devtools.intermediate_output_tap._reducers import (
    FULL_TENSOR,
    STATS,
    StatReducer,
    get_reducer,
)
from executorch.devtools.intermediate_output_tap._selectors import (
    NodeSelector,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
)
from executorch.devtools.intermediate_output_tap._spec import TapSpec
from executorch.devtools.intermediate_output_tap._strip_pass import strip_taps_
from executorch.devtools.intermediate_output_tap._tap_pass import (
    TapRule,
    find_tap_nodes,
    is_tap_node,
    tap_intermediate_outputs_,
)

__all__ = [
    "FULL_TENSOR",
    "STATS",
    "NodeSelector",
    "StatReducer",
    "TapRule",
    "TapSpec",
    "compare_aot_runtime_dataframe",
    "custom_ops_lib",
    "find_tap_nodes",
    "get_reducer",
    "is_tap_node",
    "select_all",
    "select_all_call_function",
    "select_any",
    "select_by_module_class",
    "select_by_module_path",
    "select_by_op_type",
    "select_not",
    "strip_taps_",
    "tap_compare",
    "tap_intermediate_outputs_",
]
