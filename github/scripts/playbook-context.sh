#!/usr/bin/env bash
# Validates what the console sent before the agent sees any of it, and exports PLAYBOOK_ID,
# PLAYBOOK_RUN_ID, PLAYBOOK_STEP_ID and PLAYBOOK_CHAIN_DEPTH for the steps that follow.
# Never prints the payload and never lets a shell parse it: the event file is read with jq.
#
# usage: playbook-context.sh AGENT
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
agent=${1:?usage: playbook-context.sh AGENT}

if ! payload=$(jq -ces --arg agent "$agent" -f "$here/playbook-payload.jq" "${GITHUB_EVENT_PATH:?}" 2>&1); then
  echo "playbook-context: refused: ${payload//$'\n'/ }" >&2
  exit 1
fi

# Every value was matched against its pattern: none can hold a line break or an equals sign.
jq -r '"PLAYBOOK_ID=\(.playbook_id)", "PLAYBOOK_RUN_ID=\(.run_id)", "PLAYBOOK_STEP_ID=\(.step_id)",
  "PLAYBOOK_CHAIN_DEPTH=\(.chain_depth)"' <<<"$payload" >>"${GITHUB_ENV:?}"
echo "playbook-context: $agent was asked for by $(jq -r '"run \(.run_id), step \(.step_id), depth \(.chain_depth)"' <<<"$payload")"
