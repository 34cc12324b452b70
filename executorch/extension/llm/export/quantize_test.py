"""Models that `quantize_model_` has quantized, exported and run."""

import pytest
import torch

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.llm.export.quantize import quantize_model_
from executorch.runtime import Runtime

pytest.importorskip("torchao")
pytestmark = pytest.mark.filterwarnings("ignore:quantize_model_ is experimental")


class Small(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.model = torch.nn.Module()
        self.model.embed_tokens = torch.nn.Embedding(32, width)
        self.middle = torch.nn.Linear(width, width)
        self.lm_head = torch.nn.Linear(width, 32, bias=False)

    def forward(self, tokens):
        return self.lm_head(self.middle(self.model.embed_tokens(tokens)).relu())


TOKENS = torch.tensor([[3, 1, 4, 1, 5]])


def run(model, partitioners):
    program = torch.export.export(model, (TOKENS,), strict=True)
    buffer = to_edge_transform_and_lower(program, partitioner=partitioners).to_executorch().buffer
    (result,) = Runtime.get().load_program(buffer).load_method("forward").execute([TOKENS])
    return result


@pytest.mark.parametrize("partitioners", [[], [XnnpackPartitioner()]], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("linear", ["4w", "8w", "8da4w", "8da8w"])
@pytest.mark.parametrize("embedding", ["4w", "8w"])
def test_what_it_makes_runs(linear, embedding, partitioners):
    torch.manual_seed(0)
    model = Small().eval()
    floats = model(TOKENS)
    quantize_model_(model, qlinear_config=linear, qembedding_config=embedding)
    expected = model(TOKENS)
    assert not torch.equal(expected, floats)
    # An activation in the middle of two of its 127 steps may become either, in both linears.
    steps = 2 * float(floats.abs().max()) / 127 if linear.startswith("8da") else 1e-4
    torch.testing.assert_close(run(model, partitioners), expected, rtol=1e-4, atol=steps)


def test_rows_that_are_no_whole_groups_are_named_or_left():
    with pytest.raises(RuntimeError, match=r"middle: weight \[48, 48\]: 4w .* groups of 32"):
        quantize_model_(Small(48), qlinear_config="4w")
    model = Small(48)
    quantize_model_(model, qlinear_config="4w", skip_incompatible_shapes=True)
    assert type(model.middle.weight) is torch.nn.Parameter
    quantize_model_(model, qlinear_config="4w", qlinear_group_size=16)
    assert type(model.middle.weight.data) is not torch.Tensor


def test_head_and_embedding_may_share_a_weight():
    model = Small()
    quantize_model_(model, "8w", qembedding_config="8w", tie_word_embeddings=True)
    assert model.lm_head.weight is model.model.embed_tokens.weight


@pytest.mark.parametrize("given", [{"qlinear_config": "3w"}, {"qembedding_config": "8da4w"}])
def test_unknown_names_are_refused_before_anything_changes(given):
    model = Small()
    with pytest.raises(ValueError, match="Unsupported q.*_config: '.*'; known are 4w, 8w"):
        quantize_model_(model, **{"qembedding_config": "8w"} | given)
    assert type(model.model.embed_tokens.weight) is torch.nn.Parameter
