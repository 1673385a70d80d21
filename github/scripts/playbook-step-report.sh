#!/usr/bin/env bash
# Reports how one step of a playbook ended, as the last step of the report job. Fails the workflow
# run when the report could not be delivered. Never makes an outcome better than it was.
#
# usage: playbook-step-report.sh AGENT
# reads APP_TOKEN, CORE_CONSOLE_HTTP_URL, the event file, and:
#   AGENT_OUTCOME     the agent step's outcome; empty when it was never reached
#   AGENT_JOB_RESULT  the agent job's result; empty when it was lost
#   AGENT_DETAIL      the agent's own line, may be empty
#   FINDINGS          not empty when the agent handed on a report.json
#   FINDINGS_OUTCOME  the outcome of delivering it
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=console-call.sh
source "$here/console-call.sh"
agent=${1:?usage: playbook-step-report.sh AGENT}

# An outcome that is empty or unknown counts as the worst.
rank() {
  case $1 in success) echo 0 ;; skipped) echo 1 ;; cancelled) echo 2 ;; *) echo 3 ;; esac
}

conclude() {
  local names=(success skipped cancelled failure) worst
  worst=$(rank "${AGENT_OUTCOME:-}")
  if (($(rank "${AGENT_JOB_RESULT:-}") > worst)); then
    worst=$(rank "${AGENT_JOB_RESULT:-}")
  fi
  if [[ -n ${FINDINGS:-} && ${FINDINGS_OUTCOME:-} != success ]]; then
    worst=3
  fi
  echo "${names[worst]}"
}

# The agent's line is shortened and cleaned here, for the console refuses what it may not store and
# a refused report would leave the step waiting until its deadline.
detail() {
  local facts="agent step ${AGENT_OUTCOME:-not reached}, job ${AGENT_JOB_RESULT:-lost}"
  if [[ -n ${FINDINGS:-} && ${FINDINGS_OUTCOME:-} != success ]]; then
    facts="$facts, its report.json was not delivered"
  fi
  FACTS=$facts jq -nr --from-file "$here/playbook-detail.jq"
}

if ! payload=$(jq -ces --arg agent "$agent" -f "$here/playbook-payload.jq" "${GITHUB_EVENT_PATH:?}" 2>&1); then
  call_log "step report: refused: ${payload//$'\n'/ }"
  exit 1
fi
conclusion=$(conclude)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

DETAIL=$(detail) CONCLUSION=$conclusion \
  RUN_URL="${GITHUB_SERVER_URL:?}/${GITHUB_REPOSITORY:?}/actions/runs/${GITHUB_RUN_ID:?}" \
  jq -c '{runId: .run_id, stepId: .step_id, agent, conclusion: env.CONCLUSION, detail: env.DETAIL,
          githubRunUrl: env.RUN_URL}' <<<"$payload" >"$work/report.json"

if ! console_call POST /api/playbook-runs/step-report "$work/report.json" "$work/answer.json"; then
  call_log "step report: $conclusion was NOT delivered; the console ends the step at its deadline"
  exit 1
fi
if ! again=$(jq -ers 'select(length == 1) | .[0] | select(type == "object" and .accepted == true)
  | if .duplicate == true then " (the console had it already)" else "." end' "$work/answer.json" 2>/dev/null) ||
  [[ -z $again ]]; then
  call_log "step report: whatever answered $CALL_STATUS at CORE_CONSOLE_HTTP_URL is not the console"
  exit 1
fi
echo "step report: $conclusion delivered${again%.}"
