#!/usr/bin/env bash
# Set up the active Python environment, or the one of PYTHON_EXECUTABLE: see --help.
exec "${PYTHON_EXECUTABLE:-python3}" "$(dirname "$0")/tools/dev/install.py" "$@"
