#!/usr/bin/env bash
# Delivers the report.json that an agent handed on to that agent's door. Never changes it.
#
# usage: agent-report.sh DOOR FILE      e.g. agent-report.sh /api/judgements handed-on/report.json
# reads APP_TOKEN and CORE_CONSOLE_HTTP_URL
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=console-call.sh
source "$here/console-call.sh"
door=${1:?usage: agent-report.sh DOOR FILE}
file=${2:?usage: agent-report.sh DOOR FILE}

readonly REPORT_MAX_BYTES=1048576 # what the report doors take
if [[ ! -f $file || -L $file ]] || (($(wc -c <"$file") > REPORT_MAX_BYTES)); then
  call_log "agent report: report.json is missing, is no plain file or is over 1 MiB"
  exit 1
fi
if ! jq -es 'length == 1 and (.[0] | type == "object")' "$file" >/dev/null 2>&1; then
  call_log "agent report: report.json is not one JSON object"
  exit 1
fi
answer=$(mktemp)
trap 'rm -f -- "$answer"' EXIT
if ! console_call POST "$door" "$file" "$answer"; then
  call_log "agent report: NOT delivered"
  exit 1
fi
if ! jq -es 'length == 1 and (.[0] | type == "object")' "$answer" >/dev/null 2>&1; then
  call_log "agent report: whatever answered $CALL_STATUS at CORE_CONSOLE_HTTP_URL is not the console"
  exit 1
fi
echo "agent report: delivered to $door"
