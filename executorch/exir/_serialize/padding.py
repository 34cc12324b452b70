"""Sizes in files, in bytes."""

from __future__ import annotations


def padding_required(offset: int, alignment: int) -> int:
    """How far it is from `offset` to the next multiple of `alignment`."""
    return -offset % alignment


def aligned_size(input_size: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is no smaller than `input_size`."""
    return input_size + padding_required(input_size, alignment)


def pad_to(data: bytes, length: int) -> bytes:
    """`data` and zeros, `length` bytes together; ValueError if `data` is longer."""
    if len(data) > length:
        raise ValueError(f"pad_to: {len(data)} bytes do not fit into {length}")
    return data.ljust(length, b"\0")
