"""Print the stripped size of size_test, by section, beside its limit; exit 1 when it is over.

python tests/size/report.py build/size/tests/size/size_test
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 45_000  # bytes: core runtime, verification on, no kernels


def main(binary: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder, "size_test")
        subprocess.run(["strip", "--strip-all", "-o", str(stripped), binary], check=True)
        total = stripped.stat().st_size
        sections = subprocess.check_output(["size", "-A", str(stripped)], text=True)
    rows = re.findall(r"^(\.\S+)\s+(\d+)", sections, re.M)
    for name, size in sorted(rows, key=lambda row: -int(row[1]))[:6]:
        print(f"{name:24}{int(size):>10,}")
    print(f"{'stripped file':24}{total:>10,}  of {LIMIT:,} bytes")
    return int(total > LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
