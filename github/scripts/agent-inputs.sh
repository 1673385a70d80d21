#!/usr/bin/env bash
# Saves what the console gives an agent to work on. Never judges it: that is the agent's work.
#
# usage: agent-inputs.sh DOOR FILE      e.g. agent-inputs.sh /api/rules-recon/inputs inputs.json
# reads APP_TOKEN and CORE_CONSOLE_HTTP_URL
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=console-call.sh
source "$here/console-call.sh"
door=${1:?usage: agent-inputs.sh DOOR FILE}
file=${2:?usage: agent-inputs.sh DOOR FILE}

if ! console_call GET "$door" "" "$file"; then
  rm -f -- "$file"
  call_log "agent inputs: none were had from $door"
  exit 1
fi
if ! jq -es 'length == 1 and (.[0] | type == "object")' "$file" >/dev/null 2>&1; then
  rm -f -- "$file"
  call_log "agent inputs: $door did not answer one JSON object"
  exit 1
fi
echo "agent inputs: saved from $door"
