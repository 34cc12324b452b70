from __future__ import annotations

import pytest
import torch

from executorch.examples.models.llama.static_attention import StaticKVCache


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 3, 8, 12, 19])
@pytest.mark.parametrize("style", ["shift_pointer", "smart_mask"])
def test_a_cache_holds_the_newest_tokens(style: str, chunk: int, transpose: bool) -> None:
    size, total = 8, chunk * 7
    text = torch.arange(total).view(1, total, 1).expand(1, total, 2)
    cache = torch.full((1, size, 2), -1)
    start = cache.mT if transpose else cache
    now = start
    for pos in range(0, total, chunk):
        # The tokens lie within padding.
        padded = torch.nn.functional.pad(text[:, pos : pos + chunk], (0, 0, 2, 3), value=-7)
        update = padded.mT if transpose else padded
        now = StaticKVCache.apply_update(now, update, pos, style, transpose, 2, chunk)
    rows = (now.mT if transpose else now)[0, :, 0].tolist()
    newest = [-1] * max(0, size - total) + list(range(max(0, total - size), total))
    if style == "smart_mask":
        newest = [max((t for t in newest if t % size == i), default=-1) for i in range(size)]
    assert rows == newest
    assert bool((start == -1).all())


def test_all_of_an_update_and_caches_of_no_length() -> None:
    update = torch.arange(3.0).view(1, 3, 1)
    for style, expected in (("shift_pointer", [9, 0, 1, 2]), ("smart_mask", [1, 2, 9, 0])):
        cache = torch.full((1, 4, 1), 9.0)
        found = StaticKVCache.apply_update(cache, update, pos=3, style=style)
        assert found.flatten().tolist() == expected
        assert StaticKVCache.apply_update(cache[:, :0], update, 3, style).numel() == 0
    assert StaticKVCache.calculate_cache_key(3, 1) == "l3,h1"
    with pytest.raises(ValueError, match="expected 'shift_pointer' or 'smart_mask', found 'ring'"):
        StaticKVCache.apply_update(cache, update, 0, "ring")
