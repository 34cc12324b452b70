import pytest
import torch
from torch import nn

from executorch.exir import to_edge
from executorch.exir.graph.pass_driver import run_passes
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes.fuse_batch_norm_into_conv import FuseBatchNormIntoConv


def trained(norm):
    with torch.no_grad():
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
        if norm.affine:
            norm.weight.uniform_(-2, 2)
            norm.bias.uniform_(-1, 1)
    return norm


def edge(module, x):
    return to_edge(torch.export.export(module.eval(), (x,))).exported_program()


def count(program):
    return sum("batch_norm" in str(n.target) for n in program.graph.nodes)


CONVS = {
    "plain": lambda: (nn.Conv2d(4, 6, 3), torch.randn(2, 4, 7, 5)),
    "without bias": lambda: (nn.Conv2d(4, 6, 3, bias=False), torch.randn(2, 4, 7, 5)),
    "depthwise": lambda: (nn.Conv2d(6, 6, 3, groups=6), torch.randn(2, 6, 7, 5)),
    "groups": lambda: (nn.Conv2d(4, 6, 3, groups=2), torch.randn(2, 4, 7, 5)),
    "transposed": lambda: (nn.ConvTranspose2d(4, 6, 3), torch.randn(2, 4, 7, 5)),
    "transposed groups": lambda: (nn.ConvTranspose2d(4, 6, 3, groups=2), torch.randn(2, 4, 7, 5)),
    "1d": lambda: (nn.Conv1d(4, 6, 3), torch.randn(2, 4, 7)),
}


@pytest.mark.parametrize("name", CONVS)
@pytest.mark.parametrize("affine", [True, False])
def test_fused_convolution_computes_the_same(name, affine):
    conv, x = CONVS[name]()
    norm = nn.BatchNorm1d if name == "1d" else nn.BatchNorm2d
    module = nn.Sequential(conv, trained(norm(6, affine=affine)), nn.ReLU())
    program = edge(module, x)
    assert FuseBatchNormIntoConv()(program).modified
    assert count(program) == 0
    program.validate()
    # two evaluations of a sum of products that differ by a few roundings each
    terms = conv.weight[0].numel() * 2 + 4
    bound = 2 * terms * torch.finfo(torch.float32).eps
    with torch.no_grad():
        expected, before = module(x), conv(x)
    scale = float(expected.abs().max()) + float(before.abs().max()) * 3
    torch.testing.assert_close(program.module()(x), expected, rtol=bound, atol=bound * scale)


def test_convolution_with_another_reader_is_left():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), trained(nn.BatchNorm2d(4))

        def forward(self, x):
            y = self.conv(x)
            return y, self.norm(y)

    program = edge(Both(), torch.randn(1, 3, 5, 5))
    assert not FuseBatchNormIntoConv()(program).modified


def test_weight_with_another_reader_is_left():
    conv = nn.Conv2d(3, 4, 3)
    x = torch.randn(1, 3, 5, 5)
    programs = {
        "raw": edge(conv, x),
        "normed": edge(nn.Sequential(conv, trained(nn.BatchNorm2d(4))), x),
    }
    assert not run_passes([ProgramView(p) for p in programs.values()], [FuseBatchNormIntoConv()])


def test_zero_variance_without_epsilon_is_left():
    norm = nn.BatchNorm2d(4, eps=0.0)
    norm.running_var.zero_()
    program = edge(nn.Sequential(nn.Conv2d(3, 4, 3), norm), torch.randn(1, 3, 5, 5))
    assert not FuseBatchNormIntoConv()(program).modified


def test_programs_are_written_without_batch_norm():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), trained(nn.BatchNorm2d(4)))
    program = to_edge(torch.export.export(module.eval(), (torch.randn(1, 3, 5, 5),)))
    plan = program.to_executorch().executorch_program.execution_plan[0]
    assert [o.name for o in plan.operators] == ["aten::convolution"]


def test_fused_convolution_has_the_debug_handles_of_both():
    module = nn.Sequential(nn.Conv2d(4, 6, 3), trained(nn.BatchNorm2d(6)), nn.ReLU())
    program = to_edge(torch.export.export(module.eval(), (torch.randn(2, 4, 7, 5),)))
    assert program.to_executorch().debug_handle_map == {"forward": {0: (1, 2), 1: 3}}
