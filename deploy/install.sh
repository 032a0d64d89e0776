#!/bin/sh
# Install guardband from this checkout into a folder of its own, with its kernels compiled ahead.
# usage: deploy/install.sh FOLDER [ROLE...], with the roles of `guardband warmup`
set -eu
folder=$1
shift
source=$(cd "$(dirname "$0")/.." && pwd)
"${PYTHON:-python3}" -m venv "$folder"
pip() {
    "$folder/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "$@"
}
pip --require-hashes --requirement "$source/requirements/image.txt"
pip --no-deps --no-build-isolation "$source"
NUMBA_CACHE_DIR="$folder/kernels" "$folder/bin/guardband" warmup "$@"
