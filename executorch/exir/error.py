"""Errors of the export side."""

from enum import Enum


class ExportErrorType(Enum):
    INVALID_INPUT_TYPE = 1
    INVALID_OUTPUT_TYPE = 2
    VIOLATION_OF_SPEC = 3  # a documented rule is broken
    NOT_SUPPORTED = 4  # valid, but this exporter cannot do it
    MISSING_PROPERTY = 5
    UNINITIALIZED = 6


class ExportError(Exception):
    """An export that cannot be done right; says where, what was found and what to do."""

    def __init__(self, error_code: ExportErrorType, message: str) -> None:
        super().__init__(f"[{error_code.name}] {message}")
        self.error_code = error_code
        self.message = message


class InternalError(Exception):
    """A rule between two parts of the exporter is broken; not the caller's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def first_line(error: BaseException) -> str:
    """The first line of an error's message; its type's name if it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def internal_assert(pred: bool, assert_msg: str) -> None:
    if not pred:
        raise InternalError(assert_msg)
