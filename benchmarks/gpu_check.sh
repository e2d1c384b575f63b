#!/usr/bin/env bash
# Every check of this project that needs a GPU, in one call of less than five minutes: benchmarks/gpu_check.sh FOLDER
# The report goes into FOLDER. Exit codes: 0 all passed, 1 something failed, 2 no GPU here.
set -uo pipefail

folder=$(realpath -m "${1:?usage: benchmarks/gpu_check.sh FOLDER}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec timeout --kill-after=5 295 "${PYTHON:-python3}" benchmarks/gpu_check.py "$folder"
