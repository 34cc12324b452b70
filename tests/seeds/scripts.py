"""Python of the tutorials: files that the pages put together, and how they are run."""

from __future__ import annotations

from dataclasses import replace

from tests.seeds.row_types import Cut, Script

COMPARE = """
from executorch.runtime import Runtime
forward = Runtime.get().load_program(quantized.buffer).load_method("forward")
found, reference = forward.execute(list(example_inputs))[0], m(*example_inputs)[0]
assert (found - reference).abs().max() < 0.05 * reference.abs().max()
"""
# The page hands the quantized model to XNNPACK next; it runs on the operators alone as well.
RUN_QUANTIZED = f"""
quantized = to_edge(traced_model).to_executorch()
{COMPARE}
assert "quantized_decomposed::choose_qparams" in str(quantized.executorch_program)
"""
# What the quantized program says to the pages' prompt: the C++ loop has to say the same. Each step
# is compared with the quantized model, which may prefer another token where two are nearly equal.
CONTINUE = """
import json
said = {tokens}
for _ in range({n}):
    context = torch.tensor([said[-{window}:]])
    found, reference = forward.execute([context])[0], m(context)[0]
    assert (found - reference).abs().max() < 0.05 * reference.abs().max()
    said.append(int(found[0, -1].argmax()))
json.dump(said, open("quantized.json", "w"))
with open("quantized.pte", "wb") as file:
    file.write(quantized.buffer)
"""
# Every layer is in a delegate, and the program gives what the quantized model gives.
RUN_LOWERED = f"""
quantized = et_program
{COMPARE}
from executorch.exir.backend.utils import get_delegation_info
outside = get_delegation_info(edge_manager.exported_program().graph_module).left_out
outside = [left.node for left in outside]
assert not [name for name in outside if "linear" in name or "quantize" in name], outside
"""
SAVE = """
with open("nanogpt.pte", "wb") as file:
    file.write(et_program.buffer)
"""

SUMMARY = (
    r"Total\s+delegated\s+subgraphs:\s*\d+\s+"
    r"Number\s+of\s+delegated\s+nodes:\s*\d+\s+Number\s+of\s+non-delegated\s+nodes:\s*\d+",
)
TABLE = (  # sorted by name, the total last
    r"op_type\s.*occurrences_in_delegated_graphs\s.*occurrences_in_non_delegated_graphs",
    r"aten_add_tensor[\s\S]*aten_view_copy_default[\s\S]*Total",
)
FRAGMENT = (
    r"%aten_where_self\S* : \[num_users=\d+\] = call_function\["
    r"target=executorch\.exir\.dialects\.edge\._ops\.aten\.where\.self\]",
    r"%lowered_module_1 : \[num_users=1\] = get_attr\[target=lowered_module_1\]",
    r"backend_id: XnnpackBackend\s+lowered graph\(\):\s+%\S+ : \[num_users=\d+\] = placeholder",
    r"return \[",
)


def _counts(printing: Cut, summary: Cut, table: Cut) -> Cut:
    """Prints what was delegated, and what the page shows of it."""
    summary, table = replace(summary, expects=SUMMARY), replace(table, expects=TABLE)
    return replace(printing, shows=(summary, table))


def _graph(printing: Cut, fragment: Cut) -> Cut:
    """Prints the delegated graph, and the part of it that the page shows."""
    return replace(printing, shows=(replace(fragment, expects=FRAGMENT),))


# The page prints graphs; here what it made is also run, against what its Python says.
RUN_TRANSFORMED = """
import copy
from executorch.runtime import Runtime
def executed(manager, args):
    buffer = copy.deepcopy(manager).to_executorch().buffer
    return Runtime.get().load_program(buffer).load_method("forward").execute(list(args))[0]
conv = aten_dialect.state_dict
filters = conv["conv.weight"], conv["conv.bias"]
by_hand = torch.nn.functional.conv2d(*example_args, *filters, padding=1)
torch.testing.assert_close(executed(transformed_edge_program, example_args), by_hand.sigmoid())
torch.testing.assert_close(executed(edge_program, example_args), by_hand.relu())
"""
RUN_WHOLE = """
torch.testing.assert_close(lowered_module(*example_args), torch.sin(*example_args))
(plan,) = lowered_module.program().execution_plan
assert [d.id for d in plan.delegates] == ["BackendWithCompilerDemo"], plan.delegates
"""
RUN_COMPOSED = """
a = torch.sin(*example_args)
composed = (a, torch.sin(a), a + torch.sin(a) + 0.3)
torch.testing.assert_close(exported_program.module()(*example_args), composed)
inside = exported_program.graph_module.lowered_module_0
assert inside.processed_bytes == lowered_module.processed_bytes
"""
RUN_PARTS = """
def delegates(program):
    call = torch.ops.higher_order.executorch_call_delegate
    return [node for node in program.graph.nodes if node.target is call]
assert len(delegates(delegated_program)) == 2
torch.testing.assert_close(delegated_program.module()(*example_args), f(*example_args))
"""
RUN_DELEGATED = """
program = delegated_program.exported_program()
assert len(delegates(program)) == 2
torch.testing.assert_close(program.module()(*example_args), f(*example_args))
"""
RUN_PLANNED = """
from executorch.exir import memory
method = Runtime.get().load_program(executorch_program.buffer).load_method("forward")
torch.testing.assert_close(method.execute(list(example_args))[0], f(*example_args))
calls = [n for n in executorch_program.exported_program().graph.nodes if n.op == "call_function"]
for call in calls:
    if call.target is not memory.alloc:
        outs = [a.name for a in call.target._schema.arguments if a.is_out]
        assert outs and all(call.kwargs[o].target is memory.alloc for o in outs), call.format_node()
print("every operator writes to an allocation")
"""

_ANY_LENGTH = tuple(
    (f"{call})", f"{call}, dynamic_shapes=dynamic_shape)")
    for call in ("export_for_training(model, example_inputs", "= export(m, example_inputs")
)

SCRIPTS = (
    Script(
        "export_nanogpt.py",
        "A",
        (
            Cut(
                3, "A", 20, 52, "# export_nanogpt.py", "0" * 24 + "110000001", keeps="portable.pte"
            ),
            Cut(18, "A", 76, 114, "# export_nanogpt.py", "0" * 31 + "11" + "0" * 6),
            _counts(
                Cut(32, "A", 177, 184, "from executorch.devtools.backend_debug", "0" * 8),
                Cut(33, "A", 186, 188, "Total delegated"),
                Cut(34, "A", 189, 221, "op_type"),
            ),
            _graph(
                Cut(37, "A", 227, 229, "from executorch.exir.backend.utils", "000"),
                Cut(38, "A", 232, 244, "%aten_where"),
            ),
            Cut(41, "A", 260, 264, "# export_nanogpt.py", "00000"),
            Cut(18, "A", 115, 118, "et_program", "0001", keeps="delegated.pte"),
            Cut(41, "A", 265, 268, "# ...", "0000"),
            Cut(26, "A", 128, 136, "# export_nanogpt.py", "0" * 9),
            Cut(27, "A", 137, 152, "# Use dynamic", "0" * 16, after=RUN_QUANTIZED),
            Cut(22, "A", 157, 165, "from executorch", "010000001", after=RUN_LOWERED),
        ),
        (Cut(5, "A", 53, 53, "To export, run the script with python export_nanogpt.py"),),
    ),
    Script(
        "export_nanogpt.py",
        "B",
        (
            Cut(3, "B", 107, 148, "# export_nanogpt.py", keeps="portable.pte"),
            Cut(
                41,
                "B",
                690,
                696,
                "# export_nanogpt.py",
                before="edge_manager = to_edge(traced_model, compile_config=edge_config)",
            ),
            Cut(41, "B", 698, 701, "# ...", before="et_program = edge_manager.to_executorch()"),
            Cut(20, "B", 378, 426, "# export_nanogpt.py"),
            _counts(
                Cut(32, "B", 584, 592, "from executorch.devtools.backend_debug"),
                Cut(33, "B", 596, 598, "Total  delegated"),
                Cut(34, "B", 600, 652, "op_type"),
            ),
            _graph(
                Cut(37, "B", 656, 658, "from executorch.exir.backend.utils"),
                Cut(38, "B", 664, 676, "%aten_where"),
            ),
            Cut(20, "B", 427, 432, "et_program", keeps="delegated.pte"),
            Cut(
                29,
                "B",
                522,
                552,
                "# export_nanogpt.py",
                after=RUN_QUANTIZED,
                corrects=_ANY_LENGTH,
                note="for its own loop, which begins with 3 tokens, not 63",
            ),
            Cut(
                23,
                "B",
                556,
                561,
                "from executorch",
                after=RUN_LOWERED + CONTINUE.format(tokens=[1, 2, 3], n=30, window=63),
            ),
        ),
        (
            Cut(5, "B", 150, 150, "要导出,请使用python export_nanogpt.py"),
            Cut(25, "B", 487, 487, "python export_nanogpt.py"),
        ),
    ),
    Script(
        "export_nanogpt.py",
        "C",
        (
            Cut(4, "C", 38, 79, "# export_nanogpt.py", keeps="portable.pte"),
            Cut(19, "C", 116, 163, "# export_nanogpt.py"),
            _counts(
                Cut(32, "C", 260, 268, "from executorch.devtools.backend_debug"),
                Cut(33, "C", 273, 275, "Total  delegated"),
                Cut(34, "C", 279, 288, "|    |  op_type"),
            ),
            _graph(
                Cut(37, "C", 294, 296, "from executorch.exir.backend.utils"),
                Cut(38, "C", 304, 316, "%aten_where"),
            ),
            Cut(41, "C", 328, 334, "# export_nanogpt.py"),
            Cut(19, "C", 164, 168, "et_program", keeps="delegated.pte"),
            Cut(41, "C", 336, 339, "# ..."),
            Cut(26, "C", 194, 201, "from executorch.backends.transforms"),
            Cut(28, "C", 205, 225, "# Use dynamic", after=RUN_QUANTIZED),
            Cut(22, "C", 232, 234, "from executorch"),
            Cut(22, "C", 238, 244, "edge_config =", after=RUN_LOWERED),
        ),
        (Cut(5, "C", 82, 82, "To export, run the script with `python export_nanogpt.py`"),),
    ),
    Script(
        "export.py",
        "D",
        (
            Cut(6, "D", 58, 62, "import torch"),
            Cut(7, "D", 72, 81, "from torch.nn.attention", "0000000101"),
            Cut(8, "D", 87, 91, "from executorch.exir"),
            Cut(9, "D", 112, 114, "#Write the serialized", "001", keeps="portable.pte"),
            Cut(
                42,
                "D",
                442,
                445,
                "import copy",
                before="from executorch.sdk import generate_etrecord\n"
                "edge_program_manager = to_edge(traced_model, compile_config=edge_config)",
            ),
            Cut(
                42,
                "D",
                447,
                450,
                "# ...",
                before="et_program_manager = edge_program_manager.to_executorch()",
            ),
            Cut(21, "D", 98, 106, "from executorch", after=SAVE, keeps="delegated.pte"),
            Cut(30, "D", 291, 320, "from executorch.backends.transforms", after=RUN_QUANTIZED),
            Cut(24, "D", 327, 334, "from executorch"),
            _counts(
                Cut(35, "D", 360, 367, "from executorch.exir.backend.utils"),
                Cut(36, "D", 373, 375, "Total  delegated"),
                Cut(36, "D", 379, 407, "|    |  op_type"),
            ),
            Cut(
                39,
                "D",
                419,
                421,
                "from executorch.exir.backend.utils",
                before="class self:\n    edge_manager = edge_manager",
                expects=(r"lowered graph\(\):",),
            ),
            Cut(
                24,
                "D",
                336,
                336,
                "et_program",
                after=RUN_LOWERED
                + CONTINUE.format(tokens=[1, 2, 3, 0, 0, 0, 0, 0], n=20, window=8),
            ),
        ),
        (Cut(10, "D", 119, 119, "`python export.py`"),),
    ),
    Script(
        "export_tutorial.py",
        "E",
        (
            Cut(
                11,
                "E",
                23,
                42,
                "import torch",
                "00001223221220000000",
                expects=("Pre-Autograd ATen Dialect Graph", "ATen Dialect Graph", "conv2d"),
                shows=(
                    Cut(40, "E", 38, 39, "print(", expects=(r"Pre-Autograd ATen.*\s+GraphModule",)),
                    Cut(
                        40, "E", 41, 42, "print(", expects=(r"\nATen Dialect Graph\s+ExportedPro",)
                    ),
                ),
            ),
            Cut(
                12,
                "E",
                69,
                81,
                "import traceback as tb",
                "0010000000101",
                expects=(r"tensor\(\[\[2", "Traceback"),
            ),
            Cut(
                13,
                "E",
                85,
                104,
                "from torch.export import dynamic_dim",
                "00100000000000000000",
                expects=("ATen Dialect Graph",),
            ),
            Cut(
                14,
                "E",
                119,
                131,
                "# Works correctly",
                "0000010100101",
                expects=(r"tensor\(\[\[2., 2.\]", "Traceback"),
            ),
            Cut(
                31,
                "E",
                154,
                171,
                "example_args = (torch.randn(1, 3, 256, 256),)",
                "0" * 18,
                expects=(r"Quantized Graph[\s\S]*quantize_per_tensor",),
            ),
            Cut(
                15,
                "E",
                192,
                202,
                "from executorch.exir import",
                shows=(
                    Cut(
                        40, "E", 201, 202, "print(", expects=(r"Edge Dialect Graph\s+ExportedPro",)
                    ),
                ),
            ),
            Cut(
                16,
                "E",
                209,
                228,
                "def encode(x):",
                "01010000000000000011",
                expects=("Edge Dialect graph of encode", "Edge Dialect graph of decode"),
            ),
            Cut(
                85,
                "E",
                240,
                258,
                "example_args = (torch.randn(1, 3, 256, 256),)",
                "0000000001234323000",
                after=RUN_TRANSFORMED,
                shows=(
                    Cut(
                        40,
                        "E",
                        257,
                        258,
                        "print(",
                        expects=(r"Transformed Edge Dialect Graph\s+E",),
                    ),
                ),
            ),
            Cut(
                88,
                "E",
                275,
                302,
                "class LowerableModule",
                "01212" + "0" * 9 + "1000100000000" + "1",
                after=RUN_WHOLE,
                expects=(
                    r"LoweredBackendModule\(\)\nBackendWithCompilerDemo\n"
                    r"b'1version:0#op:demo::aten.sin.default",
                ),
            ),
            Cut(
                89,
                "E",
                314,
                340,
                "class NotLowerableModule",
                "0122120122212222" + "0" * 11,
                after=RUN_COMPOSED,
            ),
            Cut(90, "E", 358, 377, "def f(a, x, b):", "0" + "1" * 6 + "0" * 13, after=RUN_PARTS),
            Cut(
                91,
                "E",
                385,
                399,
                "def f(a, x, b):",
                "0" + "1" * 6 + "0" * 8,
                after=RUN_DELEGATED,
                shows=(
                    Cut(
                        40, "E", 398, 399, "print(", expects=(r"Delegated program\s+ExportedProg",)
                    ),
                ),
            ),
            Cut(
                86,
                "E",
                407,
                419,
                "from executorch.exir import ExecutorchBackendConfig",
                after=RUN_PLANNED,
                shows=(
                    Cut(
                        40, "E", 417, 418, "print(", expects=(r"ExecuTorch Dialect\s+ExportedProg",)
                    ),
                    Cut(
                        87,
                        "E",
                        420,
                        437,
                        "Notice that",
                        expects=("every operator writes to an allocation",),
                    ),
                ),
            ),
            Cut(
                17,
                "E",
                442,
                466,
                "import torch",
                "0000122212" + "0" * 14 + "1",
                after="torch.save((example_args, aten_dialect(*example_args)), 'model.pt')",
                keeps="model.pte",
            ),
        ),
        (),
        "model.pte",
    ),
)
