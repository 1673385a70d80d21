#!/usr/bin/env bash
# Write the hash locks below requirements/ and package-lock.json from what pyproject.toml and
# package.json ask for. Versions already locked stay unless --upgrade is given. Names no index:
# where packages come from is the machine's affair.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly UV_VERSION=0.13.9
readonly PYTHON_VERSION=3.11 # the oldest that pyproject.toml admits

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"

lock() { # lock FILE WHAT…: write requirements/FILE
    local file=requirements/$1
    shift
    "$tools/bin/uv" pip compile "$@" --quiet --universal --python-version "$PYTHON_VERSION" \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
        -o "$file"
}

extras=(--extra postgres --extra objectstore)
lock dev.txt pyproject.toml --group dev "${extras[@]}" "$@"
lock run.txt pyproject.toml "${extras[@]}" --constraint requirements/dev.txt "$@"
lock build.txt --group build --constraint requirements/dev.txt "$@"

npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund
