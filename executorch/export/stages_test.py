"""Stages by themselves, and what a session tells of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from executorch.exir.passes.remove_graph_asserts_pass import RemoveGraphAssertsPass
from executorch.export import ExportRecipe, ExportSession, LoweringRecipe, StageType
from executorch.export.stages import (
    EdgeProgramManagerTransformStage,
    EdgeTransformAndLowerStage,
    PipelineArtifact,
    ToBackendStage,
    ToEdgeStage,
)


def program() -> torch.export.ExportedProgram:
    return torch.export.export(nn.Linear(4, 2), (torch.randn(3, 4),))


def test_a_session_registers_the_stages_that_it_runs() -> None:
    stages = [StageType.TORCH_EXPORT, StageType.TO_EDGE_TRANSFORM_AND_LOWER]
    recipe = ExportRecipe(pipeline_stages=stages)
    session = ExportSession(nn.Linear(4, 2), [(torch.randn(3, 4),)], recipe)
    assert list(session.get_all_registered_stages()) == stages
    assert session.get_registered_stage(StageType.TO_EDGE) is None


def test_a_stage_of_the_user_may_take_modules() -> None:
    class Exports(ToEdgeStage):
        def run(self, artifact: PipelineArtifact) -> None:
            programs = {
                method: torch.export.export(
                    model, artifact.get_context("example_inputs")[method][0]
                )
                for method, model in artifact.data.items()
            }
            super().run(artifact.copy_with_new_data(programs))

    model, x = nn.Linear(4, 2), torch.randn(3, 4)
    stages = [StageType.TO_EDGE, StageType.TO_EXECUTORCH]
    session = ExportSession(model, [(x,)], ExportRecipe(pipeline_stages=stages))
    with pytest.raises(ValueError, match="needs the stage torch_export"):
        session.export()
    session.register_stage(StageType.TO_EDGE, Exports())
    session.export()
    torch.testing.assert_close(session.run_method()[0], model(x))


def test_artifacts_have_the_time_that_their_stage_took() -> None:
    session = ExportSession(nn.Linear(4, 2), [(torch.randn(3, 4),)], ExportRecipe(strict=False))
    session.export()
    for artifact in session.get_stage_artifacts().values():
        assert artifact.get_context("duration_ms") >= 0
    slowest = session.get_stage_artifacts()[StageType.TO_EDGE_TRANSFORM_AND_LOWER]
    assert slowest.get_context("duration_ms") > 0


def test_an_empty_list_of_inputs_is_not_a_missing_method() -> None:
    session = ExportSession(program(), {"forward": []}, ExportRecipe())
    with pytest.raises(ValueError, match="'forward' are an empty list"):
        session.get_example_input()
    with pytest.raises(KeyError, match="'other' not found"):
        session.get_example_input("other")


@pytest.mark.parametrize(
    "stage",
    [
        EdgeTransformAndLowerStage,
        ToEdgeStage,
        EdgeProgramManagerTransformStage,
        ToBackendStage,
    ],
)
def test_stages_are_made_from_a_lowering_recipe(stage: type) -> None:
    asked: list[str] = []

    def passes(method: str, program: torch.export.ExportedProgram) -> list[object]:
        asked.append(method)
        return [RemoveGraphAssertsPass()]

    made = stage.from_recipe(LoweringRecipe(edge_transform_passes=[passes]))
    data = {"forward": program()}
    takes_manager = not made.can_start_pipeline
    if takes_manager:
        edge = ToEdgeStage()
        edge.run(PipelineArtifact(data, {}))
        data = edge.get_artifacts().data
    made.run(PipelineArtifact(data, {}))
    assert made.get_artifacts().data.methods == {"forward"}
    runs_them = stage in (EdgeTransformAndLowerStage, EdgeProgramManagerTransformStage)
    assert asked == (["forward"] if runs_them else [])
    assert isinstance(stage.from_recipe(None), stage)


def test_transforms_of_a_manager_need_a_manager() -> None:
    with pytest.raises(TypeError, match="expected an EdgeProgramManager, found dict"):
        EdgeProgramManagerTransformStage().run(PipelineArtifact({}, {}))


def test_delegation_info_names_its_methods(capsys: pytest.CaptureFixture[str]) -> None:
    session = ExportSession({"encode": program(), "decode": program()}, None, ExportRecipe())
    session.export()
    session.print_delegation_info()
    printed = capsys.readouterr().out
    assert printed.index("method 'decode'") < printed.index("method 'encode'")
