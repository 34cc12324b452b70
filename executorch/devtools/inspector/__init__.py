"""Reads what a run recorded: times and values by operator, module and line of the model."""

from executorch.devtools.inspector._events import Event, EventBlock, PerfData
from executorch.devtools.inspector._inspector import Inspector
from executorch.devtools.inspector._inspector_utils import TimeScale, compare_results

__all__ = ["Event", "EventBlock", "Inspector", "PerfData", "TimeScale", "compare_results"]
