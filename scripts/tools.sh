#!/usr/bin/env bash
# Make sure that the commands given as arguments exist: as root on Debian install those that are
# missing, else name them all in one line and fail. Touches nothing when nothing is missing.
set -euo pipefail

missing=()
for command in "$@"; do
    case $command in
        ensurepip) "${PYTHON:-python3}" -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv) ;;
        node) command -v node >/dev/null || missing+=(nodejs) ;;
        *) command -v "$command" >/dev/null || missing+=("$command") ;;
    esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]} -- install these Debian packages (or their like) and run make again" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing the Debian packages ${missing[*]}"
if ! { apt-get update && apt-get install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
