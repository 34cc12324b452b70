"""Where the tiles of an image lie, and where in a tile a token lies. No size depends on data, so
that programs take any number of tiles."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from executorch.extension.llm.modules._replace import replace_modules


def _embeddings_of_tiles(table: Tensor, aspect_ratio: Tensor, n_tiles: Any) -> Tensor:
    """For each image and tile the entry of `table` [tiles down, tiles across, tokens, dim] at the
    tile's place; zeros for tiles that fill up. aspect_ratio [images, 2]: tiles down and across."""
    if not torch.compiler.is_compiling():
        down, across = aspect_ratio.unbind(1)
        fits = (aspect_ratio >= 1).all() and (aspect_ratio <= table.size(0)).all()
        if not fits or bool((down * across > n_tiles).any()):
            raise RuntimeError(
                f"aspect ratios {aspect_ratio.tolist()} for {n_tiles} tiles, each 1 to "
                f"{table.size(0)}"
            )
    tile = torch.arange(n_tiles, device=aspect_ratio.device).unsqueeze(0)
    down, across = aspect_ratio[:, :1], aspect_ratio[:, 1:].clamp(min=1)
    is_there = tile < down * across
    row = torch.where(is_there, tile // across, 0)
    return table[row, tile % across] * is_there[:, :, None, None]


def _resized(table: Tensor, size: tuple[int, int]) -> Tensor:
    """[down, across, ...] interpolated to `size`."""
    planes = table.flatten(2).permute(2, 0, 1).unsqueeze(0)
    planes = nn.functional.interpolate(planes, size=size, mode="bilinear", align_corners=True)
    return planes[0].permute(1, 2, 0).reshape(*size, *table.shape[2:])


def _load(
    module: nn.Module, name: str, state_dict: dict[str, Any], prefix: str, resize: Any
) -> None:
    """Before a state dict is loaded: bring one of its tables to the module's size."""
    key = prefix + name
    if key not in state_dict:
        return
    wanted = module.get_parameter(name).shape
    with torch.no_grad():
        found = resize(state_dict[key])
    if found.shape != wanted:
        raise ValueError(
            f"{key}: {list(state_dict[key].shape)} cannot be resized to {list(wanted)}"
        )
    state_dict[key] = found


def _grid(n_tokens: int) -> int:
    """Side of the grid of patches in a tile's tokens; ValueError where they are no square and one
    more."""
    side = math.isqrt(max(n_tokens - 1, 0))
    if side * side != n_tokens - 1:
        raise ValueError(f"{n_tokens} tokens of a tile are no square grid of patches and one more")
    return side


class TilePositionalEmbedding(nn.Module):
    """x + tanh(gate) * embedding of each tile's place, the same for all its tokens."""

    def __init__(self, max_num_tiles: int, embed_dim: int) -> None:
        super().__init__()
        self.max_num_tiles, self.embed_dim = max_num_tiles, embed_dim
        shape = (max_num_tiles, max_num_tiles, 1, embed_dim)
        self.embedding = nn.Parameter(torch.randn(shape) * embed_dim**-0.5)
        self.gate = nn.Parameter(torch.zeros(1))
        self.register_load_state_dict_pre_hook(_load_tile_embedding)

    @staticmethod
    def _resize_position_embedding(embedding: Tensor, tgt_max_num_tiles: int) -> Tensor:
        return _resized(embedding, (tgt_max_num_tiles, tgt_max_num_tiles))

    def forward(self, x: Tensor, aspect_ratio: Tensor) -> Tensor:
        """x [images, tiles, tokens, dim], aspect_ratio [images, 2], tiles down and across; images
        of fewer tiles are filled up. As x."""
        tiles = _embeddings_of_tiles(self.embedding, aspect_ratio, x.shape[1])
        return x + tiles * self.gate.tanh()


def _load_tile_embedding(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    def resize(table: Tensor) -> Tensor:
        if table.shape[0] != table.shape[1]:
            raise ValueError(f"{prefix}embedding: as many tiles down as across, {table.shape}")
        return TilePositionalEmbedding._resize_position_embedding(table, module.max_num_tiles)

    _load(module, "embedding", state_dict, prefix, resize)


class TiledTokenPositionalEmbedding(nn.Module):
    """x + (1 - tanh(gate)) * an embedding of each token's place in its tile + tanh(gate) * one of
    its and the tile's place. A tile's tokens are one more than its patches: the class token first.
    """

    def __init__(self, max_num_tiles: int, embed_dim: int, tile_size: int, patch_size: int) -> None:
        super().__init__()
        self.max_num_tiles = max_num_tiles
        self.n_tokens_per_tile = (tile_size // patch_size) ** 2 + 1
        local = torch.randn(self.n_tokens_per_tile, embed_dim) * embed_dim**-0.5
        shape = (max_num_tiles, max_num_tiles, self.n_tokens_per_tile, embed_dim)
        self.local_token_positional_embedding = nn.Parameter(local)
        self.global_token_positional_embedding = nn.Parameter(torch.randn(shape) * embed_dim**-0.5)
        self.gate = nn.Parameter(torch.zeros(1))
        self.register_load_state_dict_pre_hook(_load_token_embeddings)

    @staticmethod
    def _resize_local_position_embedding(
        local_pos_embed: Tensor, tgt_patch_grid_size: int
    ) -> Tensor:
        side = _grid(local_pos_embed.shape[0])
        patches = local_pos_embed[1:].unflatten(0, (side, side))
        patches = _resized(patches, (tgt_patch_grid_size, tgt_patch_grid_size))
        return torch.cat([local_pos_embed[:1], patches.flatten(0, 1)])

    @staticmethod
    def _resize_global_position_embedding(
        global_pos_embed: Tensor, tgt_max_num_tiles: int, tgt_patch_grid_size: int
    ) -> Tensor:
        """Patches are interpolated across tiles, as one image."""
        down, across, n_tokens, _ = global_pos_embed.shape
        side, new = _grid(n_tokens), tgt_patch_grid_size
        tiles = (tgt_max_num_tiles, tgt_max_num_tiles)
        patches = global_pos_embed[:, :, 1:].unflatten(2, (side, side)).transpose(1, 2)
        image = patches.reshape(down * side, across * side, -1)
        image = _resized(image, (tiles[0] * new, tiles[1] * new))
        parts = image.reshape(tiles[0], new, tiles[1], new, -1).transpose(1, 2).flatten(2, 3)
        return torch.cat([_resized(global_pos_embed[:, :, :1], tiles), parts], 2)

    def forward(self, x: Tensor, aspect_ratio: Tensor) -> Tensor:
        """x [images, tiles, tokens, dim], aspect_ratio [images, 2], tiles down and across. As x."""
        gate = self.gate.tanh()
        tiles = _embeddings_of_tiles(
            self.global_token_positional_embedding, aspect_ratio, x.shape[1]
        )
        return x + self.local_token_positional_embedding * (1 - gate) + tiles * gate


def _load_token_embeddings(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    side = _grid(module.n_tokens_per_tile)
    cls = TiledTokenPositionalEmbedding
    _load(
        module,
        "local_token_positional_embedding",
        state_dict,
        prefix,
        lambda t: cls._resize_local_position_embedding(t, side),
    )
    _load(
        module,
        "global_token_positional_embedding",
        state_dict,
        prefix,
        lambda t: cls._resize_global_position_embedding(t, module.max_num_tiles, side),
    )


def _of_equal_values(new: nn.Module, old: nn.Module) -> nn.Module:
    new.load_state_dict(old.state_dict())
    return new


def replace_tile_positional_embedding(model: nn.Module) -> nn.Module:
    """`model` with torchtune's embeddings of tiles below it replaced by these, of equal values."""
    from torchtune.models.clip import (  # type: ignore[import-not-found]
        TilePositionalEmbedding as Tune,
    )

    def twin(old: Any) -> nn.Module:
        tiles, _, _, dim = old.embedding.shape
        return _of_equal_values(TilePositionalEmbedding(tiles, dim), old)

    return replace_modules(model, Tune, twin)


def replace_tiled_token_positional_embedding(model: nn.Module) -> nn.Module:
    """The same of embeddings of tokens in tiles."""
    from torchtune.models.clip import (  # type: ignore[import-not-found]
        TiledTokenPositionalEmbedding as Tune,
    )

    def twin(old: Any) -> nn.Module:
        tiles, _, tokens, dim = old.global_token_positional_embedding.shape
        new = TiledTokenPositionalEmbedding(tiles, dim, tile_size=_grid(tokens), patch_size=1)
        return _of_equal_values(new, old)

    return replace_modules(model, Tune, twin)
