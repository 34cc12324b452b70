"""Arenas in the memory of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from executorch.exir.schema import DeviceType, NonConstBufferDevice
from executorch.exir.tensor import TensorSpec

_CPU = (DeviceType.CPU, 0)


def has_devices(specs: Sequence[TensorSpec]) -> bool:
    return any(spec.device is not DeviceType.CPU for spec in specs)


def place_by_device(
    specs: Sequence[TensorSpec],
    regions: Sequence[TensorSpec],
    place: Callable[[list[TensorSpec], list[TensorSpec]], list[int]],
) -> tuple[list[int], list[NonConstBufferDevice]]:
    """Plan the specs of each device by themselves, the host's first: the sizes of all arenas, and
    the devices of those that are not the host's.

    regions  memory of control flow, which is the host's
    place    (specs, regions) -> [0, bytes of arena 1, ...], and gives each of them its place
    NotImplementedError for specs that come with a memory id: it would name an arena of any device.
    """
    if any(s.mem_id is not None for s in specs) or any(r.mem_id != 1 for r in regions):
        raise NotImplementedError(
            "enable_non_cpu_memory_planning numbers the arenas by device; it cannot be combined "
            "with memory ids that specs have already"
        )
    groups: dict[tuple[DeviceType, int], list[TensorSpec]] = defaultdict(list)
    for spec in specs:
        cpu = spec.device is DeviceType.CPU
        groups[_CPU if cpu else (spec.device, spec.device_index)].append(spec)
    if regions:
        groups[_CPU]  # noqa: B018  (there is such a group, if an empty one)
    sizes: list[int] = [0]
    devices: list[NonConstBufferDevice] = []
    for device in sorted(groups):
        before = len(sizes) - 1
        sizes += place(groups[device], list(regions) if device == _CPU else [])[1:]
        for spec in groups[device]:
            if spec.mem_id is not None:
                spec.mem_id += before
        if device != _CPU:
            ids = range(before + 1, len(sizes))
            devices += [NonConstBufferDevice(i, *device) for i in ids]
    return sizes, devices
