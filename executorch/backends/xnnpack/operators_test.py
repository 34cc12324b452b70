"""The table of delegated operators, and that what stands beside it has an answer for each row."""

from __future__ import annotations

from executorch.backends.xnnpack import operators, reference
from executorch.backends.xnnpack.rules import RULES
from executorch.backends.xnnpack.serialization.payload import KINDS

# No exporter writes it.
WITHOUT_REFERENCE = {"ScaledDotProductAttention"}


def test_rows_name_kinds_of_the_payload_and_each_class_once() -> None:
    rows = list({id(rule): rule for rule in RULES.values()}.values())
    assert operators.__all__ and {rule.kind for rule in rows} - {""} <= KINDS.keys()
    classes = [rule.config for rule in rows if rule.config]
    assert len(classes) == len(set(classes))


def test_the_reference_computes_every_kind() -> None:
    missing = KINDS.keys() - reference._FUNCTIONS.keys() - WITHOUT_REFERENCE
    assert not missing, f"give reference._FUNCTIONS what PyTorch computes for {sorted(missing)}"
    assert reference._FUNCTIONS.keys() <= KINDS.keys()
