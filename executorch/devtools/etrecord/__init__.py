"""ETRecords: what an exporter knows of a program and the program does not hold."""

from executorch.devtools.etrecord._etrecord import ETRecord, generate_etrecord, parse_etrecord

__all__ = ["ETRecord", "generate_etrecord", "parse_etrecord"]
