"""Which weights are quantized, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QuantConfig:
    """Signed integers of `bits` (4, 5, 6 or 8) with a scale for each `group_size` numbers of a row,
    and a zero point unless `symmetric`. method: "min_max", by the range of a group, or "hqq"."""

    bits: int
    group_size: int
    symmetric: bool
    method: str


@dataclass
class QuantRule:
    """What holds for weights whose whole name matches the regular expression `pattern`, in these
    `layers` (the number after "layers." in a name) if any are given. Without `config` they stay."""

    pattern: str
    config: QuantConfig | None
    layers: set[int] | None = field(default=None, repr=False)


@dataclass
class QuantRecipe:
    """The first rule that fits a name holds."""

    rules: list[QuantRule]

    def get_config(self, fqn: str) -> QuantConfig | None:
        number = re.search(r"layers\.(\d+)\.", fqn)
        layer = int(number[1]) if number else None
        for rule in self.rules:
            if (rule.layers is None or layer in rule.layers) and re.fullmatch(rule.pattern, fqn):
                return rule.config
        return None
