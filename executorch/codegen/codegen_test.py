"""Selections of operators and the C++ written for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from executorch.codegen import gen, selected_kernels
from executorch.codegen.builtin import KERNELS, builtin_operators, prim_operators
from executorch.codegen.kernel_yaml import parse_kernel_yaml
from executorch.codegen.selected_types import ALL
from executorch.codegen.selection import CodegenError, Selection
from executorch.codegen.tools import (
    gen_all_oplist,
    gen_max_kernel_num,
    gen_oplist,
    gen_selected_op_variants,
    merge_yaml,
    selective_build,
)

OPERATORS_TXT = Path(__file__).parents[1] / "exir" / "operators.txt"
SCHEMAS_TXT = OPERATORS_TXT.with_name("quantized_schemas.txt")
PORTABLE = Path("kernels/portable/functions.yaml")

SCALE = """
- func: my::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
  type_alias: {T: [Float, Double]}
  dim_order_alias: {D: [[0, 1], [1, 0]]}
  kernels:
    - {arg_meta: null, kernel_name: my::scale_out}
    - {arg_meta: {x: [T, D], out: [T, D]}, kernel_name: my::scale_2d}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "kernels.yaml"
    path.write_text(text)
    return path


def selection(*operators: str) -> Selection:
    chosen = Selection()
    for operator in operators:
        chosen.add(operator)
    return chosen


@pytest.mark.skipif(not OPERATORS_TXT.exists(), reason="the kernels were not built")
def test_tables_read_from_the_sources_are_those_of_the_runtime() -> None:
    found = set(builtin_operators()) | prim_operators()
    runtime = set(OPERATORS_TXT.read_text().split())
    # The operators of language models come with their library, whole.
    whole = {name for name in runtime if name.startswith(("llama::", "preprocess::"))}
    assert found >= runtime - whole


@pytest.mark.skipif(not SCHEMAS_TXT.exists(), reason="the kernels were not built")
def test_rows_of_quantized_operators_have_their_schemas() -> None:
    names = [line.partition("(")[0] for line in SCHEMAS_TXT.read_text().splitlines()]
    rows = [name for name in builtin_operators() if name.startswith("quantized_decomposed::")]
    assert sorted(f"quantized_decomposed::{name}" for name in names) == sorted(rows)


def test_selection_has_upstreams_form(tmp_path: Path) -> None:
    path = tmp_path / "selected.yaml"
    gen_oplist.main(
        [
            f"--output_path={path}",
            "--root_ops=aten::add.out, my::x.out,",
            '--ops_dict={"aten::mul.out": ["v1/6;0"]}',
        ]
    )
    content = yaml.safe_load(path.read_text())
    assert content["et_kernel_metadata"] == {
        "aten::add.out": ["default"],
        "aten::mul.out": ["v1/6;0"],
        "my::x.out": ["default"],
    }
    assert content["operators"]["my::x.out"] == {
        "debug_info": ["None"],
        "include_all_overloads": False,
        "is_root_operator": True,
        "is_used_for_training": True,
    }
    assert not content["include_all_operators"]
    gen_oplist.main([f"--output_path={path}", "--include_all_operators"])
    assert yaml.safe_load(path.read_text())["include_all_operators"]


def test_lists_written_by_hand_bring_linear_layers_with_products(tmp_path: Path) -> None:
    def selected(*options: str) -> Selection:
        gen_oplist.main([f"--output_path={path}", *options])
        return Selection.load(path)

    path = tmp_path / "selected.yaml"
    linear = "aten::linear.out"
    for product in ("aten::addmm.out", "aten::mm.out"):
        assert set(selected(f"--root_ops={product}").kernels) == {product, linear}
    assert not selected("--root_ops=aten::bmm.out").selects(linear)
    listed = write(tmp_path, "- op: mm.out")
    assert selected(f"--ops_schema_yaml_path={listed}").selects(linear)

    chosen = selected('--ops_dict={"aten::mm.out": ["v1/6;0,1"], "aten::addmm.out": ["v1/5;0,1"]}')
    assert chosen.types_of(linear) == {5, 6}
    chosen = selected('--ops_dict={"aten::mm.out": ["v1/6;0,1"]}', "--root_ops=aten::addmm.out")
    assert chosen.types_of(linear) is None


def test_operators_selected_on_the_command_line_bring_linear_layers(tmp_path: Path) -> None:
    options = ["--op_registration_whitelist", "aten::mm.out", f"--install_dir={tmp_path}"]
    assert gen.main([*options, f"--functions_yaml_path={PORTABLE}"]) == 0
    source = (tmp_path / gen.REGISTRATION).read_text()
    assert source.count("boxed<&") == 2 and "aten::linear.out" in source


def test_programs_bring_linear_layers_where_they_call_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "selected.yaml"
    monkeypatch.setattr(gen_oplist, "of_model", lambda _: selection("aten::mm.out"))
    gen_oplist.main([f"--output_path={path}", "--model_file_path=model.pte"])
    assert set(Selection.load(path).kernels) == {"aten::mm.out"}


def test_linear_layers_need_no_line_in_a_list_of_portable_kernels(tmp_path: Path) -> None:
    row = "{op: mm.out, kernels: [{arg_meta: null, kernel_name: 'torch::executor::mm_out'}]}"
    chosen = selection("aten::mm.out")
    chosen.add_linear()
    files = gen.generate(tmp_path, "lib", chosen, write(tmp_path, f"- {row}"))
    source = files[tmp_path / gen.REGISTRATION]
    assert 'Kernel("aten::linear.out", boxed<&torch::executor::native::linear_out>)' in source
    assert source.count("boxed<&") == 2


def test_lists_of_different_products_do_not_overlap(tmp_path: Path) -> None:
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for path, product in zip(paths, ("aten::addmm.out", "aten::mm.out"), strict=True):
        gen_oplist.main([f"--output_path={path}", f"--root_ops={product}"])
    listed = write(tmp_path, "\n".join(map(str, paths)))
    arguments = [f"--output_dir={tmp_path}", f"--model_file_list_path=@{listed}"]
    gen_all_oplist.main([*arguments, "--check_ops_not_overlapping"])
    assert len(Selection.load(tmp_path / "selected_operators.yaml").kernels) == 3


def test_selecting_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no operator is selected"):
        gen_oplist.main([f"--output_path={tmp_path / 'x.yaml'}"])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--ops_dict=[1]", "gen_oplist: --ops_dict: expected .*found \\[1\\]"),
        ("--ops_dict={1", "gen_oplist: --ops_dict is no JSON"),
        ('--ops_dict={"a::b::c": []}', "--ops_dict: expected an operator .*found 'a::b::c'"),
        ("--root_ops=add,,::x", "--root_ops: expected an operator such as aten::add.out, found ''"),
        ("--root_ops=add,::x", "--root_ops: expected an operator .*found '::x'"),
        ("--root_ops=aten::add.out mul", "--root_ops: expected .*found 'aten::add.out mul'"),
        ("--ops_schema_yaml_path={bytes}", "gen_oplist: .*model.pte: no text in UTF-8"),
        ("--output_path={bytes}/x.yaml", "gen_oplist: .*model.pte"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, option: str, message: str) -> None:
    (tmp_path / "model.pte").write_bytes(b"\xff")
    option = option.replace("{bytes}", str(tmp_path / "model.pte"))
    arguments = ["--root_ops=aten::add.out", f"--output_path={tmp_path / 'x.yaml'}", option]
    with pytest.raises(SystemExit, match=message):
        gen_oplist.main(arguments)


def test_selections_merge_unless_they_may_not_overlap(tmp_path: Path) -> None:
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    selection("aten::add.out", "aten::mul.out").save(paths[0])
    selection("aten::add.out", "aten::sub.out").save(paths[1])
    listed = write(tmp_path, "\n".join(map(str, paths)))
    arguments = [f"--output_dir={tmp_path}", f"--model_file_list_path=@{listed}"]
    gen_all_oplist.main(arguments)
    merged = Selection.load(tmp_path / "selected_operators.yaml")
    assert set(merged.kernels) == {"aten::add.out", "aten::mul.out", "aten::sub.out"}
    with pytest.raises(SystemExit, match="selected before: aten::add.out"):
        gen_all_oplist.main([*arguments, "--check_ops_not_overlapping"])


def test_selections_are_found_in_their_folders(tmp_path: Path) -> None:
    selection("aten::add.out").save(tmp_path / "a" / "selected_operators.yaml")
    listed = write(tmp_path, str(tmp_path / "a"))
    gen_all_oplist.main([f"--output-dir={tmp_path}", f"--model-file-list-path=@{listed}"])
    assert set(Selection.load(tmp_path / "selected_operators.yaml").kernels) == {"aten::add.out"}


def test_options_are_spelled_with_dashes_or_underscores(tmp_path: Path) -> None:
    rows = write(tmp_path, "- {op: add.out, kernels: [{arg_meta: null, kernel_name: 'my::add'}]}")
    options = [f"--functions-yaml-path={rows}", f"--fallback-yaml-path={rows}"]
    merge_yaml.main([*options, f"--output_dir={tmp_path / 'out'}"])
    chosen = tmp_path / "chosen.yaml"
    gen_oplist.main([f"--output_path={chosen}", "--include-all-operators"])
    assert Selection.load(chosen).include_all
    options = [f"--custom_ops_yaml_path={rows}", f"--install_dir={tmp_path}"]
    assert gen.main([*options, "--add_exception_boundary", "--dry-run"]) == 0


def test_only_selected_builtins_are_referenced(tmp_path: Path) -> None:
    files = gen.generate(tmp_path, "lib", selection("aten::add.out"), PORTABLE)
    source = files[tmp_path / gen.REGISTRATION]
    assert 'Kernel("aten::add.out", boxed<&torch::executor::native::add_out>)' in source
    assert source.count("boxed<&") == 1
    assert "int et_registered_lib = add_all();" in source


@pytest.mark.parametrize(
    ("keys", "dtypes", "numbers"),
    [
        ({"default"}, None, None),
        ({"default", "v1/6;0,1"}, {6}, None),
        ({"v1/6;0,1|11;|6;"}, None, {6, 11}),
        ({"v1/6;0", "v1/5;0"}, {4}, {4, 5, 6}),
        ({"default"}, {15}, {15}),
    ],
)
def test_types_asked_for_are_those_of_keys_and_lists(
    tmp_path: Path, keys: set[str], dtypes: set[int] | None, numbers: set[int] | None
) -> None:
    chosen = Selection()
    chosen.add("aten::cat.out", keys, dtypes=dtypes)
    assert chosen.types_of("aten::cat.out") == numbers
    chosen.save(tmp_path / "saved.yaml")
    assert Selection.load(tmp_path / "saved.yaml").types_of("aten::cat.out") == numbers
    chosen.include_all = True
    assert chosen.types_of("aten::cat.out") is None


def test_kernels_of_a_type_selection_check_the_types_of_their_operator(tmp_path: Path) -> None:
    chosen = selection("aten::mul.out")
    chosen.add("aten::add.out", {"v1/6;0|11;0"})
    source = gen.generate(tmp_path, "lib", chosen, PORTABLE, for_types=True)[
        tmp_path / gen.REGISTRATION
    ]
    assert 'SelectedOperator k_aten_add_out{"aten::add.out", 0x840u}' in source
    assert "boxed_for_types<&torch::executor::native::add_out, k_aten_add_out>" in source
    assert 'Kernel("aten::mul.out", boxed<&torch::executor::native::mul_out>)' in source


def test_kernels_are_compiled_for_the_types_of_their_family() -> None:
    def types(name: str) -> int | None:
        source = selected_kernels.text_of(KERNELS / "portable" / name, chosen)
        found = re.search(r"#define ET_SELECTED_TYPES (\w+)u ", source)
        return int(found[1], 16) if found else None

    chosen = selection()
    chosen.add("aten::mm.out", {"v1/5;0,1"})  # Half
    chosen.add("aten::embedding.out", {"v1/5;0,1|4;0"})  # and Long
    assert types("matmul.cpp") == 1 << 5
    assert types("gather.cpp") == 1 << 5 | 1 << 4
    assert types("softmax.cpp") is None
    # Half is computed in Float.
    assert types("internal/cast.cpp") == 1 << 5 | 1 << 4 | 1 << 6
    assert types("internal/shape.cpp") is None
    chosen.add("aten::bmm.out")
    assert types("matmul.cpp") == ALL
    assert types("internal/cast.cpp") == ALL


def test_variants_header_answers_for_names_without_namespace(tmp_path: Path) -> None:
    chosen = selection("my::whole.out")
    chosen.add("aten::add.out", {"v1/6;0"})
    chosen.save(tmp_path / "selected.yaml")
    gen_selected_op_variants.main(
        [f"--yaml-file-path={tmp_path / 'selected.yaml'}", f"--output-dir={tmp_path}"]
    )
    text = (tmp_path / "selected_op_variants.h").read_text()
    assert "bool should_include_kernel_dtype(const char* operator_name," in text
    assert 'if (name == "add.out") return (uint64_t{0x40u} >> type & 1) != 0;  // FLOAT' in text
    assert 'if (name == "whole.out") return (uint64_t{0xffffffffffffffffu}' in text
    assert text.endswith("  return false;\n}\n")


def test_operator_without_kernel_is_named_with_who_asked(tmp_path: Path) -> None:
    chosen = selection("aten::add.out")
    chosen.add("my::missing.out", source="model.pte")
    with pytest.raises(CodegenError, match=r"no kernel for my::missing.out \(asked for by model"):
        gen.generate(tmp_path, "lib", chosen, PORTABLE)


def test_prim_operators_need_not_be_selected(tmp_path: Path) -> None:
    chosen = selection("aten::add.out", "executorch_prim::add.Scalar", "aten::sym_size.int")
    assert gen.generate(tmp_path, "lib", chosen, PORTABLE)


def test_specialized_kernels_have_one_key_per_choice(tmp_path: Path) -> None:
    kernels = parse_kernel_yaml(write(tmp_path, SCALE))
    assert [(k.name, k.key) for k in kernels] == [
        ("scale_out", "default"),
        ("scale_2d", "v1/6;0,1|6;0,1"),
        ("scale_2d", "v1/6;1,0|6;1,0"),
        ("scale_2d", "v1/7;0,1|7;0,1"),
        ("scale_2d", "v1/7;1,0|7;1,0"),
    ]
    assert {k.namespace for k in kernels} == {"my::native"}
    declared = "Tensor& scale_out(KernelRuntimeContext& ctx, const Tensor& x, double factor, "
    assert kernels[0].declaration == declared + "Tensor& out);"


def test_every_kind_of_argument_has_a_parameter(tmp_path: Path) -> None:
    schema = (
        "my::f.out(Tensor? a, Tensor[] b, Tensor?[] c, int[2] d, SymInt e, float[]? f, str? g, "
        "Scalar? h, ScalarType i, bool j, *, Tensor(a!) k, Tensor(b!) l) -> "
        "(Tensor(a!), Tensor(b!))"
    )
    text = f"- func: {schema}\n  kernels: [{{arg_meta: null, kernel_name: 'my::f_out'}}]\n"
    (kernel,) = parse_kernel_yaml(write(tmp_path, text))
    assert kernel.declaration == (
        "std::tuple<Tensor&, Tensor&> f_out(KernelRuntimeContext& ctx, "
        "const std::optional<Tensor>& a, ArrayRef<Tensor> b, ArrayRef<std::optional<Tensor>> c, "
        "ArrayRef<int64_t> d, int64_t e, std::optional<ArrayRef<double>> f, "
        "std::optional<std::string_view> g, const std::optional<Scalar>& h, ScalarType i, bool j, "
        "Tensor& k, Tensor& l);"
    )


def test_own_kernel_replaces_the_builtin_one(tmp_path: Path) -> None:
    text = "- {op: add.out, kernels: [{arg_meta: null, kernel_name: 'my::add_out'}]}\n"
    path = write(tmp_path, text)
    merge_yaml.main(
        [f"--functions_yaml_path={path}", f"--fallback_yaml_path={PORTABLE}"]
        + [f"--output_dir={tmp_path}"]
    )
    chosen = selection("aten::add.out", "aten::mul.out")
    files = gen.generate(tmp_path, "lib", chosen, tmp_path / "merged.yaml")
    source = files[tmp_path / gen.REGISTRATION]
    assert 'Kernel("aten::add.out", boxed<&my::native::add_out>)' in source
    assert 'Kernel("aten::mul.out", boxed<&torch::executor::native::mul_out>)' in source
    assert source.count("boxed<&") == 2
    declared = "decltype(torch::executor::native::add_out) add_out;"
    assert declared in files[tmp_path / "NativeFunctions.h"]


@pytest.mark.parametrize("text", ["", "text", "{op: add.out}"])
def test_only_lists_of_operators_are_merged(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SystemExit, match=f"merge_yaml: {path}: expected a list of operators"):
        merge_yaml.main([f"--functions_yaml_path={path}", f"--output_dir={tmp_path / 'out'}"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo: bar", "neither a selection of operators nor a list of kernels"),
        ("et_kernel_metadata: {'aten::add.out': [default]}", "neither a selection"),
        ("operators: ['aten::add.out']", r"operators: expected a map by name, found \['aten::add"),
    ],
)
def test_what_is_no_selection_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        Selection.load(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {op: nowhere.out, kernels: [{arg_meta: null, kernel_name: 'a::b'}]}", "not known"),
        ("- {op: add.out, kernels: [{arg_meta: null, kernel_name: b}]}", "namespace::function"),
        ("- {op: add.out}", "no `kernels`"),
        ("- {kernels: []}", "needs `op` or `func`"),
        ("- {func: 'a::b(Tensor(?) x) -> Tensor', kernels: [{kernel_name: 'a::b'}]}", "schema"),
        (SCALE.replace("x: [T, D]", "x: [U, D]"), "alias U is not defined"),
        (SCALE.replace("Float, Double", "Float, Quad"), "no element type Quad"),
        ("a: [", "while parsing"),
    ],
)
def test_bad_yaml_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        parse_kernel_yaml(write(tmp_path, text))


def test_the_table_of_kernels_has_a_row_for_each_kernel_of_the_selections(tmp_path: Path) -> None:
    first, second, header = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "o" / "max.h"
    selection = Selection()
    selection.add("aten::add.out", {"v1/6;0,1|6;0,1|6;0,1", "v1/3;0,1|3;0,1|3;0,1"})
    selection.add("aten::mul.out")
    selection.save(first)
    second.write_text("operators: {aten::relu.out: {}}\n")
    command = ["--oplist-yaml", str(first), "--oplist_yaml", str(second)]
    gen_max_kernel_num.main([*command, "--output-path", str(header)])
    number = 4 + len(prim_operators())
    assert f"#define EXECUTORCH_SELECTED_MAX_KERNEL_NUM {number}\n" in header.read_text()
    Selection(include_all=True).save(second)
    gen_max_kernel_num.main([*command, "--output-path", str(header)])
    assert "#define" not in header.read_text()
    for content, said in (("x", "no such array"), ("static Kernel prim_ops[] = {\n};", "none in")):
        (tmp_path / "ops.cpp").write_text(content)
        with pytest.raises(CodegenError, match=said):
            gen_max_kernel_num.gen_max_kernel_num([first], tmp_path / "ops.cpp", header)
    with pytest.raises(SystemExit, match="none.yaml: No such file"):
        gen_max_kernel_num.main(
            ["--oplist-yaml", str(tmp_path / "none.yaml"), "--output-path", str(header)]
        )


def test_a_program_says_what_it_asks_of_kernels() -> None:
    """Two methods: additions of matrices, one of them with a half result, and an output twice."""

    def tensor(kind: str, *order: int) -> dict[str, Any]:
        return {"val_type": "Tensor", "val": {"scalar_type": kind, "dim_order": list(order)}}

    def plan(*arguments: list[int]) -> dict[str, Any]:
        calls = [
            {"instr_args_type": "KernelCall", "instr_args": {"op_index": 1, "args": each}}
            for each in arguments
        ]
        return {
            "operators": [{"name": "aten::mm", "overload": "out"}, {"name": "aten::add"}],
            "chains": [{"instructions": [{"instr_args_type": "FreeCall"}, *calls]}],
            "values": [tensor("FLOAT", 0, 1), tensor("HALF", 1, 0), {"val_type": "Int", "val": {}}],
        }

    program = {"execution_plan": [plan([0, 0, 2], [0, 0, 2]), plan([0, 1, 2])]}
    assert selective_build._get_program_operators(program) == ["aten::add"]
    (found,) = selective_build._get_io_metadata_for_program_operators(program).values()
    assert len(found) == 2
    assert {arguments[1].dtype for arguments in found} == {6, 5}
    assert {tuple(arguments[1].dim_order) for arguments in found} == {(0, 1), (1, 0)}
    for first, _, alpha in found:
        assert (first.kernel_type, alpha.kernel_type) == (5, 2)
        with pytest.raises(RuntimeError, match="no dtype"):
            _ = alpha.dtype
    with pytest.raises(CodegenError, match="not a program"):
        selective_build._get_program_from_buffer(b"no program")
