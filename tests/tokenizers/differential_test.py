"""Tokens equal to those of the reference libraries; ./dev tokenizers compares a million strings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from differential import Strings, differences
from references import pairs


def test_tokens_are_those_of_the_reference_libraries(tmp_path):
    found = {}
    for pair in pairs(tmp_path):
        found[pair.name] = differences(pair, Strings(1), 300, most=1)
    assert len(found) > 30
    assert {name: lines for name, lines in found.items() if lines} == {}
