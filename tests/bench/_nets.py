"""Networks with the shapes of well-known ones; random weights, evaluation mode is the caller's."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv_norm(
    c_in: int, c_out: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Convolution that keeps the size (but for the stride), then batch norm."""
    conv = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(c_out))


class MLP(nn.Sequential):
    """float [b, 784] to [b, 10]."""

    def __init__(self) -> None:
        wide = 512
        hidden = (nn.Linear(784, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU())
        super().__init__(*hidden, nn.Linear(wide, 10))


class InvertedResidual(nn.Module):
    """Widen by `expand`, depthwise 3x3, narrow; added to the input where the shape stays."""

    def __init__(self, c_in: int, c_out: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = c_in * expand
        widen = [conv_norm(c_in, wide, 1), nn.ReLU6()] if expand != 1 else []
        depthwise = [conv_norm(wide, wide, 3, stride, groups=wide), nn.ReLU6()]
        self.body = nn.Sequential(*widen, *depthwise, conv_norm(wide, c_out, 1))
        self.adds = stride == 1 and c_in == c_out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.adds else self.body(x)


class MobileNetV2(nn.Module):
    """float [b, 3, 224, 224] to [b, 1000]. Source: Sandler et al., 2018, table 2."""

    STAGES = (  # expansion, channels, blocks, stride of the first block
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        layers = [conv_norm(3, 32, 3, 2), nn.ReLU6()]
        c_in = 32
        for expand, c, blocks, stride in self.STAGES:
            for i in range(blocks):
                layers.append(InvertedResidual(c_in, c, stride if i == 0 else 1, expand))
                c_in = c
        self.features = nn.Sequential(*layers, conv_norm(320, 1280, 1), nn.ReLU6())
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class BasicBlock(nn.Module):
    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(c_in, c_out, 3, stride)
        self.second = conv_norm(c_out, c_out, 3)
        same = stride == 1 and c_in == c_out
        self.shortcut = nn.Identity() if same else conv_norm(c_in, c_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet18(nn.Module):
    """float [b, 3, 224, 224] to [b, 1000]. Source: He et al., 2015, table 1."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, c_in = [], 64
        for c, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(c_in, c, stride), BasicBlock(c, c, 1)]
            c_in = c
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1)
        return self.classifier(x.flatten(1))


class Attention(nn.Module):
    """Multi-head attention of x float [b, t, width] with itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        q, k, v = (
            project(x).view(b, t, self.heads, width // self.heads).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, width))


class EncoderLayer(nn.Module):
    """Norms before the sublayers (ViT) or after the additions (BERT)."""

    def __init__(self, width: int, heads: int, norm_first: bool) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self.attention(self.norm_1(x))
            return x + self.mlp(self.norm_2(x))
        x = self.norm_1(x + self.attention(x))
        return self.norm_2(x + self.mlp(x))


class ViTSmall(nn.Module):
    """float [b, 3, 224, 224] in patches of 16x16 to [b, 1000]. Source: Dosovitskiy et al., 2020."""

    def __init__(self, width: int = 384, heads: int = 6, layers: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.layers = nn.Sequential(*(EncoderLayer(width, heads, True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), patches), 1) + self.positions
        return self.classifier(self.norm(self.layers(x))[:, 0])


class BertBase(nn.Module):
    """int64 [b, t] to float [b, t, 768] after 12 layers. Source: Devlin et al., 2018."""

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, width)
        self.positions = nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(EncoderLayer(width, heads, False) for _ in range(layers)))

    def forward(self, idx: Tensor) -> Tensor:
        positions = torch.arange(idx.shape[1], device=idx.device)
        return self.layers(self.norm(self.words(idx) + self.positions(positions)))


class UNet(nn.Module):
    """float image [b, 3, h, w] to a mask [b, 1, h, w]; h and w are multiples of 8. Four levels of
    two 3x3 convolutions, 32 to 256 channels wide, joined by pooling and transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        widths = (32, 64, 128, 256)
        self.down = nn.ModuleList(
            self._level(i, o) for i, o in zip((3, *widths), widths, strict=False)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.raise_ = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in pairs)
        self.up = nn.ModuleList(self._level(i, o) for i, o in pairs)
        self.last = nn.Conv2d(widths[0], 1, 1)

    @staticmethod
    def _level(c_in: int, c_out: int) -> nn.Sequential:
        return nn.Sequential(
            conv_norm(c_in, c_out, 3), nn.ReLU(), conv_norm(c_out, c_out, 3), nn.ReLU()
        )

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for level in self.down:
            if kept:
                x = F.max_pool2d(x, 2)
            x = level(x)
            kept.append(x)
        kept.pop()
        for larger, level in zip(self.raise_, self.up, strict=True):
            x = level(torch.cat([larger(x), kept.pop()], 1))
        return self.last(x)


class Vocoder(nn.Module):
    """Mel frames, float [b, 80, t], to samples [b, 1, 256 t], as the generator of HiFi-GAN does:
    transposed convolutions in one dim, each followed by residual blocks of dilated ones."""

    def __init__(self) -> None:
        super().__init__()
        width = 128
        self.first = nn.Conv1d(80, width, 7, padding=3)
        self.larger, self.blocks = nn.ModuleList(), nn.ModuleList()
        for stride, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
            padding = (kernel - stride) // 2
            self.larger.append(nn.ConvTranspose1d(width, width // 2, kernel, stride, padding))
            width //= 2
            self.blocks.append(nn.ModuleList(self._block(width, k) for k in (3, 7, 11)))
        self.last = nn.Conv1d(width, 1, 7, padding=3)

    @staticmethod
    def _block(width: int, kernel: int) -> nn.ModuleList:
        return nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=d * (kernel // 2), dilation=d)
            for d in (1, 3, 5)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for larger, blocks in zip(self.larger, self.blocks, strict=True):
            x = larger(F.leaky_relu(x, 0.1))
            results = []
            for block in blocks:
                y = x
                for conv in block:
                    y = y + conv(F.leaky_relu(y, 0.1))
                results.append(y)
            x = (results[0] + results[1] + results[2]) / 3
        return torch.tanh(self.last(F.leaky_relu(x)))


class Recognizer(nn.Module):
    """Mel frames, float [b, t, 80], to scores of 29 letters [b, t, 29], as acoustic models do: two
    LSTM layers in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(80, 256, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(512, 29)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x)[0])
