"""One call from a model to a program; recipes; the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig
from executorch.export import (
    AOQuantizationConfig,
    BackendRecipeProvider,
    ExportRecipe,
    ExportSession,
    LoweringRecipe,
    QuantizationRecipe,
    StageType,
    export,
    recipe_registry,
)
from executorch.export.__main__ import main
from executorch.export.stages import PipelineArtifact, TorchExportStage


class Net(nn.Module):
    """float [b, 64] to [b, 32]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hidden = nn.Linear(64, 128)
        self.out = nn.Linear(128, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.hidden(x)))


def example() -> tuple[Any, tuple[Any, ...], Any]:
    torch.manual_seed(1)
    return Net().eval(), (torch.randn(4, 64),), ({0: torch.export.Dim("b", max=16)},)


def half(model: Any) -> float:
    """A figure of quality."""
    return float(model(torch.full((2, 64), 0.5)).mean())


def delegates(session: ExportSession) -> list[str]:
    return [d.id for d in session.get_executorch_program().execution_plan[0].delegates]


# Uniform weights in steps of 2/15 of their range lose (2/15) / 12**0.5 * 3**0.5 = 6.7 % in each of
# two layers, together 9.4 %; half as much again for the draw of the weights and the activations.
@pytest.mark.parametrize(("quantize", "bound"), [("int8", 0.02), ("int4", 0.14)])
def test_quantize_in_one_word(quantize: Any, bound: float) -> None:
    model, inputs, shapes = example()
    session = export(model, inputs, quantize=quantize, dynamic_shapes=shapes)
    assert delegates(session) == ["XnnpackBackend"]
    for x in (inputs[0], torch.randn(7, 64)):
        found = session.run_method(example_inputs=(x,))[0]
        expected = model(x)
        noise = (found - expected).norm() / expected.norm()
        assert 0 < noise < bound
    assert len(session.get_pte_buffer()) < len(export(model, inputs).get_pte_buffer()) / 2


def test_layers_that_no_group_divides_keep_their_floats() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.odd = nn.Linear(40, 64)  # 40 is no multiple of 32
            self.even = nn.Linear(64, 40)

        def forward(self, x: Tensor) -> Tensor:
            return self.even(self.odd(x))

    session = export(Two().eval(), (torch.randn(2, 40),), quantize="int4")
    transformed = session.get_stage_artifacts()[StageType.SOURCE_TRANSFORM].data["forward"]
    assert type(transformed.odd.weight) is nn.Parameter
    assert type(transformed.even.weight) is not nn.Parameter


def test_layers_none_of_which_can_be_quantized_are_named() -> None:
    with pytest.warns(UserWarning, match=r"not quantized: .*'forward': .* 0 \(Linear\(in"):
        export(nn.Sequential(nn.Linear(40, 64)).eval(), (torch.randn(2, 40),), quantize="int4")


@pytest.mark.parametrize("quantize", ["int8", "int8-static"])
def test_layers_of_a_type_that_is_not_quantized_are_named(quantize: Any) -> None:
    model, x = nn.Sequential(nn.Linear(32, 64)).bfloat16().eval(), torch.randn(2, 32).bfloat16()
    with pytest.warns(UserWarning, match=r"not quantized: .* 0 \(Linear\(in.*, bfloat16\)"):
        session = export(model, (x,), quantize=quantize)
    torch.testing.assert_close(session.run_method(example_inputs=(x,))[0], model(x))


@pytest.mark.parametrize("quantize", ["int8", "int8-static", "int4"])
def test_recurrent_layers_that_keep_their_floats_are_named(quantize: Any) -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory, self.head = nn.LSTM(32, 32, batch_first=True), nn.Linear(32, 32)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.memory(x)[0])

    model, x = Tagger().eval(), torch.randn(1, 4, 32)
    with pytest.warns(UserWarning, match=r"not quantized: memory \(LSTM\): .* in floats"):
        session = export(model, [(x,)], quantize=quantize)
    torch.testing.assert_close(
        session.run_method(example_inputs=(x,))[0], model(x), atol=0.05, rtol=0
    )


@pytest.mark.parametrize("quantize", [None, "int8", "int8-static"])
def test_recurrent_layers_take_any_number_of_steps(quantize: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), FirstOf(nn.GRU(16, 16)), nn.Linear(16, 4)).eval()
    examples = [(torch.randn(40, 2, 8),)]
    shapes = ({0: torch.export.Dim("steps", max=90)},)
    session = export(model, examples, quantize=quantize, dynamic_shapes=shapes)
    for steps in (40, 2, 90):
        x = torch.randn(steps, 2, 8)
        (found,) = session.run_method(example_inputs=(x,))
        atol = 1e-5 if quantize is None else 0.05
        torch.testing.assert_close(found, model(x), atol=atol, rtol=0)


class FirstOf(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


def test_attention_whose_weights_stay_floats_is_named() -> None:
    model, x = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), torch.randn(2, 5, 32)
    with pytest.warns(UserWarning, match=r"not quantized: self_attn \(MultiheadAttention\): "):
        session = export(model, [(x,)], quantize="int4")
    noise = (session.run_method()[0] - model(x)).norm() / model(x).norm()
    assert 0 < noise < 0.14


def test_default_is_the_portable_program() -> None:
    model, inputs, _ = example()
    session = export(model, inputs)
    assert delegates(session) == []
    torch.testing.assert_close(session.run_method()[0], model(*inputs))


def test_methods_constants_and_given_programs() -> None:
    model, inputs, _ = example()
    session = export(
        {"one": model, "two": Net().double()},
        {"one": [inputs], "two": [(inputs[0].double(),)]},
        constant_methods={"width": 32},
    )
    assert session.get_executorch_program_manager().methods == {"one", "two"}
    torch.testing.assert_close(session.run_method("one")[0], model(*inputs))
    again = export(session.get_exported_program("one"))
    assert StageType.TORCH_EXPORT not in again.get_stage_artifacts()
    torch.testing.assert_close(again.run_method()[0], model(*inputs))


def test_recipes_of_xnnpack() -> None:
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    model, inputs, _ = example()
    for kind in XNNPackRecipeType:
        recipe = ExportRecipe.get_recipe(kind)
        assert isinstance(recipe.executorch_backend_config, ExecutorchBackendConfig)
        session = export(model, [inputs], recipe)
        assert delegates(session) == ["XnnpackBackend"], kind
        noise = (session.run_method()[0] - model(*inputs)).norm() / model(*inputs).norm()
        assert noise < 0.2, kind
    with pytest.raises(ValueError, match="unknown options \\['bits'\\]"):
        ExportRecipe.get_recipe(XNNPackRecipeType.FP32, bits=3)


def test_four_bit_recipes_have_the_groups_they_are_given() -> None:
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    by_group = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR
    by_channel = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL

    def granularity(kind: XNNPackRecipeType, **options: Any) -> str:
        recipe = ExportRecipe.get_recipe(kind, **options).quantization_recipe
        assert recipe is not None and recipe.ao_quantization_configs is not None
        return str(recipe.ao_quantization_configs[0].ao_base_config.weight_granularity)

    assert granularity(by_group) == "PerGroup(group_size=32)"
    assert granularity(by_group, group_size=64) == "PerGroup(group_size=64)"
    assert granularity(by_group, group_size=0) == granularity(by_channel) == "PerAxis(axis=0)"
    with pytest.raises(ValueError, match="unknown options \\['group_size'\\]"):
        granularity(by_channel, group_size=64)
    for wrong in ("32", -1, 1.5):
        with pytest.raises(ValueError, match="group_size: expected a count, found"):
            granularity(by_group, group_size=wrong)


def test_layers_that_groups_do_not_fit_are_named(caplog: pytest.LogCaptureFixture) -> None:
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    by_group = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR
    recipe = ExportRecipe.get_recipe(by_group, group_size=64)
    model = nn.Sequential(nn.Linear(96, 64), nn.Linear(64, 8))
    export(model, [(torch.ones(1, 96),)], recipe)
    said = [r.getMessage() for r in caplog.records if "stays in floats" in r.getMessage()]
    assert said == ["layer '0' stays in floats: its 96 inputs are no multiple of group_size 64"]


class Difference(nn.Module):
    def forward(self, x: Tensor, more: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return x, x - more["y"]


def test_one_tensor_for_two_inputs_leaves_them_two() -> None:
    x = torch.ones(2, 3)
    session = export(Difference(), [(x, {"y": x})])
    y = torch.full((2, 3), 3.0)
    first, difference = session.run_method("forward", (x, {"y": y}))
    assert torch.equal(first, x) and torch.equal(difference, x - y)


def test_source_transform_leaves_the_model_alone() -> None:
    from torchao.quantization import Int8WeightOnlyConfig

    model, inputs, _ = example()
    recipe = ExportRecipe(
        strict=False,
        quantization_recipe=QuantizationRecipe(
            ao_quantization_configs=[
                AOQuantizationConfig(Int8WeightOnlyConfig(), lambda m, name: name == "out")
            ]
        ),
    )
    before = model.out.weight.clone()
    session = export(model, inputs, recipe)
    assert torch.equal(model.out.weight, before)
    noise = (session.run_method()[0] - model(*inputs)).norm() / model(*inputs).norm()
    assert 0 < noise < 0.01


def test_stages_can_be_replaced_and_chosen() -> None:
    model, inputs, _ = example()
    seen: list[str] = []

    class Mine(TorchExportStage):
        def run(self, artifact: PipelineArtifact) -> None:
            seen.extend(artifact.data)
            super().run(artifact)

    stages = [StageType.TORCH_EXPORT, StageType.TO_EDGE, StageType.TO_BACKEND]
    recipe = ExportRecipe(strict=False, pipeline_stages=[*stages, StageType.TO_EXECUTORCH])
    session = ExportSession(model, inputs, recipe)
    session.register_stage(StageType.TORCH_EXPORT, Mine())
    session.export()
    assert seen == ["forward"]
    torch.testing.assert_close(session.run_method()[0], model(*inputs))


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([StageType.TO_EDGE, StageType.TORCH_EXPORT], "Invalid transition from to_edge"),
        ([StageType.TO_EXECUTORCH], "to_executorch cannot start a pipeline"),
        ([StageType.TORCH_EXPORT, StageType.TO_BACKEND], "Invalid transition from torch_export"),
    ],
)
def test_wrong_pipelines_are_refused(stages: list[StageType], message: str) -> None:
    model, inputs, _ = example()
    with pytest.raises(ValueError, match=message):
        ExportSession(model, inputs, ExportRecipe(pipeline_stages=stages)).export()


def test_wrong_arguments_are_refused() -> None:
    model, inputs, _ = example()
    with pytest.raises(ValueError, match="either export_recipe or quantize"):
        export(model, inputs, ExportRecipe(), quantize="int8")
    with pytest.raises(ValueError, match="expected 'int8', 'int8-static', 'int8-weights' or"):
        export(model, inputs, quantize="int3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'int4', found \\['int8'\\]"):
        export(model, inputs, quantize=["int8"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be provided .* 'forward', nn.Module"):
        export(model)
    with pytest.raises(ValueError, match="must be provided for method 'b'"):
        export({"a": model, "b": model}, {"a": [inputs]})
    with pytest.raises(TypeError, match="expected an ExportRecipe, found 'int8'"):
        export(model, inputs, "int8")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no method 'backward'"):
        export(model, {"backward": [inputs]})


def test_recipes_combine() -> None:
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    a = ExportRecipe("a", lowering_recipe=LoweringRecipe(partitioners=["p"]))  # type: ignore[list-item]
    b = ExportRecipe("b", lowering_recipe=LoweringRecipe(partitioners=["q"]))  # type: ignore[list-item]
    both = ExportRecipe.combine([a, b])
    assert both.name == "a_b"
    assert both.lowering_recipe is not None and both.lowering_recipe.partitioners == ["p", "q"]
    fp32 = ExportRecipe.get_recipe(XNNPackRecipeType.FP32)
    mine = ExportRecipe("mine", aten_transform_passes=[lambda name, program: program])
    mixed = ExportRecipe.combine([fp32, mine])
    assert mixed.name == "xnnpack_fp32_mine" and mixed.strict
    assert mixed.executorch_backend_config is not None
    model, inputs, _ = example()
    assert delegates(export(model, inputs, mixed)) == ["XnnpackBackend"]
    with pytest.raises(ValueError, match="conflicting 'strict' values"):
        ExportRecipe.combine([a, ExportRecipe(strict=False)])


def test_a_backend_brings_its_own_recipes() -> None:
    from executorch.export.recipe import RecipeType

    class Mine(RecipeType):
        ONE = "one"

        @classmethod
        def get_backend_name(cls) -> str:
            return "mine"

    class Provider(BackendRecipeProvider):
        @property
        def backend_name(self) -> str:
            return "mine"

        def get_supported_recipes(self) -> Any:
            return [Mine.ONE]

        def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
            return ExportRecipe(name=recipe_type.value)

    with pytest.raises(ValueError, match="Backend 'mine' not available"):
        ExportRecipe.get_recipe(Mine.ONE)
    recipe_registry.register_backend_recipe_provider(Provider())
    assert ExportRecipe.get_recipe(Mine.ONE).name == "one"


def test_command_writes_the_program_and_says_what_it_is_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.pte"
    spec = f"{__file__}:example"
    arguments = [spec, "-o", str(path), "--quantize", "int8", "--evaluate", f"{__file__}:half"]
    assert main([*arguments, "--parity", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["bytes"] == path.stat().st_size
    assert result["weights"] == 4 * (64 * 128 + 128 + 128 * 32 + 32)
    assert result["sqnr_db"] > 30
    assert abs(result["loss"] - result["eager_loss"]) < 0.01
    assert result["parity"]["passed"]
    assert len(result["parity"]["cases"]) == 6
    assert main([spec, "-o", str(path)]) == 0
    assert "signal to noise" in capsys.readouterr().out
    assert main([f"{__file__}:nothing"]) == 2
    assert "no function 'nothing'" in capsys.readouterr().err


def test_command_names_the_file_it_writes_and_refuses_names_before_it_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = f"{__file__}:example"
    assert main([spec, "-o", str(tmp_path / "net"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == str(tmp_path / "net.pte")
    (tmp_path / "folder.pte").mkdir()
    for name, cause in (
        ("", "--output is empty"),
        (f"{tmp_path}/none/net.pte", f"there is no folder {tmp_path}/none"),
        (f"{tmp_path}/folder", "folder.pte is a folder"),
        (f"{tmp_path}/folder.pte/", "is a folder"),
        (f"{tmp_path}/", "is a folder"),
    ):
        assert main([spec, "-o", name]) == 2
        told = capsys.readouterr().err
        assert cause in told and "export" not in told.replace("executorch.export", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.pte", "net.pte"]


def test_calibration_inputs_of_combined_recipes_follow_each_other() -> None:
    from executorch.export import QuantizationRecipe

    def recipe(name: str, *inputs: int) -> ExportRecipe:
        passes = [lambda module: module]
        quantization = QuantizationRecipe(
            calibration_inputs_fn=lambda: [(i,) for i in inputs], pre_prepare_passes=passes
        )
        return ExportRecipe(name, quantization_recipe=quantization)

    both = ExportRecipe.combine([recipe("a", 1, 2), recipe("b", 3)])
    assert both.quantization_recipe is not None
    assert both.quantization_recipe.calibration_inputs_fn is not None
    assert list(both.quantization_recipe.calibration_inputs_fn()) == [(1,), (2,), (3,)]
    single = recipe("a")
    assert ExportRecipe.combine([single]) is single


def test_edge_options_that_differ_are_named() -> None:
    def recipe(name: str, skip: bool) -> ExportRecipe:
        config = EdgeCompileConfig(_skip_dim_order=skip)
        return ExportRecipe(name, lowering_recipe=LoweringRecipe(edge_compile_config=config))

    with pytest.raises(ValueError, match=r"_skip_dim_order \(a=True, b=False\)"):
        ExportRecipe.combine([recipe("a", True), recipe("b", False)])
    same = ExportRecipe.combine([recipe("a", True), recipe("b", True)])
    assert same.lowering_recipe is not None
    assert same.lowering_recipe.edge_compile_config._skip_dim_order


def test_what_is_exported_needs_no_inputs_and_no_stage_before() -> None:
    model, inputs, _ = example()
    program = torch.export.export(model, inputs)
    assert len(export(program).get_pte_buffer()) > 0
    recipe = ExportRecipe(pipeline_stages=[StageType.QUANTIZE, StageType.TORCH_EXPORT])
    with pytest.raises(ValueError, match="Cannot run QUANTIZE, TORCH_EXPORT stage"):
        export(program, export_recipe=recipe)


def test_a_run_that_fails_leaves_no_results_of_the_run_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = export(torch.nn.ReLU(), [(torch.ones(2),)])
    artifacts = session.get_stage_artifacts()
    assert StageType.TO_EXECUTORCH in artifacts

    def fail(artifact: object) -> None:
        raise RuntimeError("no memory")

    stage = session.get_all_registered_stages()[StageType.TO_EXECUTORCH]
    monkeypatch.setattr(stage, "run", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        session.export()
    assert StageType.TO_EXECUTORCH not in artifacts
    assert StageType.TORCH_EXPORT in artifacts


def test_a_refused_pipeline_leaves_the_results_of_the_run_before() -> None:
    model, inputs, _ = example()
    session = export(model, inputs)
    before = dict(session.get_stage_artifacts())
    session._pipeline_stages = [StageType.TO_EXECUTORCH]
    with pytest.raises(ValueError, match="cannot start a pipeline"):
        session.export()
    assert session.get_stage_artifacts() == before


def test_the_registry_is_one_object() -> None:
    import executorch.backends.xnnpack.recipes  # noqa: F401  registers the provider
    from executorch.export.recipe_registry import RecipeRegistry, recipe_registry

    assert RecipeRegistry() is recipe_registry
    assert "xnnpack" in RecipeRegistry().list_backends()


@pytest.mark.parametrize("quantize", [None, "int8-static"])
def test_compiled_modules_are_exported_as_what_was_compiled(quantize: Any) -> None:
    model, (x,), shapes = example()
    for given in (shapes, {"x": shapes[0]}):
        session = export(torch.compile(model), [(x,)], dynamic_shapes=given, quantize=quantize)
        assert session.run_method("forward", (torch.cat([x, x]),))[0].shape == (8, 32)


class Sum(Net):
    """x and any number of others, float [b, 64] each, to [b, 32]."""

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        for other in others:
            x = x + other
        return super().forward(x)


@pytest.mark.parametrize("quantize", ["int8", "int8-static"])
def test_models_of_any_number_of_arguments_are_quantized(quantize: Any) -> None:
    _, (x,), (rows,) = example()
    model = Sum().eval()
    for inputs, shapes in (
        ((x, x, x), (rows, (rows, rows))),
        ((x, x, x), {"x": rows, "others": (rows, rows)}),
        ((x,), (rows,)),
        ((x, x), None),
    ):
        session = export(model, [inputs], quantize=quantize, dynamic_shapes=shapes)
        session.export()  # again, from the shapes that were given
        many = tuple(torch.cat([i, i]) for i in inputs) if shapes else inputs
        found, expected = session.run_method("forward", many)[0], model(*many).detach()
        assert float((found - expected).norm() / expected.norm()) < 0.05
