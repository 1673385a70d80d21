# shellcheck shell=bash
# Owns one call to the console: the bearer, the bounds and the retries. Sourced by the scripts
# beside it. Never prints the token, never puts it in an argument, never follows a redirect.

readonly CALL_ATTEMPTS_MAX=6       # with the waits below: rides out about a minute of outage
readonly CALL_TIMEOUT_S=20         # the console asks GitHub about the bearer before it answers
readonly CALL_BACKOFF_FIRST_S=2    # doubled after each attempt
readonly CALL_BACKOFF_MAX_S=30     # half a minute of silence is enough between attempts
readonly CALL_RETRY_AFTER_MAX_S=60 # a longer wish than this would outlive the job's own bound
readonly CALL_WAIT_TOTAL_MAX_S=240 # so that two calls of six attempts fit into the job's 15 minutes
readonly CALL_TOKEN_MAX_CHARS=4096 # eight times what GitHub's tokens have, and what the doors take
readonly CALL_ANSWER_MAX_BYTES=8388608 # eight times the largest report; the recon inputs fit well

call_log() { printf '%s\n' "$*" >&2; }

# Prints a text as one short line that GitHub cannot take for a workflow command.
call_one_line() {
  head -c 600 | tr '[:cntrl:]' ' ' | sed 's/##/# #/g; s/::/: :/g'
}

# Sets CALL_BASE, or fails: the token may travel in clear text to this very machine only.
call_address() {
  local url=${CORE_CONSOLE_HTTP_URL:-}
  local host='[A-Za-z0-9.-]+(:[0-9]{1,5})?'
  local here='(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?'
  local path='(/[A-Za-z0-9._~/-]*)?'
  if [[ ! $url =~ ^https://$host$path$ && ! $url =~ ^http://$here$path$ ]]; then
    call_log "the variable CORE_CONSOLE_HTTP_URL is not set to an https address (http is for this machine only)"
    return 1
  fi
  CALL_BASE=${url%/}
}

call_token() {
  local token=${APP_TOKEN:-}
  if ((${#token} > CALL_TOKEN_MAX_CHARS)) || [[ ! $token =~ ^[A-Za-z0-9._-]+$ ]]; then
    call_log "there is no App token to report with: the step that makes it did not succeed"
    return 1
  fi
}

# Performs one attempt and sets CALL_STATUS (000 when nothing answered).
call_once() {
  local method=$1 url=$2 body=$3 answer=$4 headers=$5
  local -a send=()
  if [[ -n $body ]]; then
    send=(--header 'Content-Type: application/json' --data-binary "@$body")
  fi
  : >"$answer"
  : >"$headers"
  # The bearer goes in by standard input: arguments can be read by every process of the machine.
  if ! CALL_STATUS=$(printf 'header = "Authorization: Bearer %s"\n' "$APP_TOKEN" |
    curl -q --config - --silent --show-error --proto '=http,https' --request "$method" \
      --connect-timeout 10 --max-time "$CALL_TIMEOUT_S" --max-filesize "$CALL_ANSWER_MAX_BYTES" \
      --header 'Accept: application/json' "${send[@]}" --dump-header "$headers" \
      --output "$answer" --write-out '%{http_code}' "$url" 2>"$headers.error"); then
    call_log "the console could not be reached: $(call_one_line <"$headers.error")"
    CALL_STATUS=000
  fi
}

# Prints how long to wait before the next attempt: what the console asked for, within a bound.
call_wait_s() {
  local attempt=$1 headers=$2 asked backoff
  asked=$(tr -d '\r' <"$headers" |
    sed -nE 's/^retry-after:[[:space:]]*([0-9]{1,6})[[:space:]]*$/\1/Ip' | tail -n 1)
  backoff=$((CALL_BACKOFF_FIRST_S << (attempt - 1)))
  if [[ -n $asked ]]; then
    backoff=$((10#$asked))
    echo $((backoff > CALL_RETRY_AFTER_MAX_S ? CALL_RETRY_AFTER_MAX_S : backoff))
  else
    echo $((backoff > CALL_BACKOFF_MAX_S ? CALL_BACKOFF_MAX_S : backoff))
  fi
}

# Calls METHOD PATH with the file BODY ("" for none) and saves the answer in ANSWER. Succeeds on
# 2xx. Retries 5xx, 429 and network errors; anything else is final, and logged.
console_call() {
  local headers status=0
  call_address || return 1
  call_token || return 1
  headers=$(mktemp) || return 1
  call_until_final "$1" "$CALL_BASE$2" "$3" "$4" "$headers" || status=1
  rm -f -- "$headers" "$headers.error"
  return "$status"
}

call_until_final() {
  local attempt wait_s waited_s=0
  for ((attempt = 1; ; attempt++)); do
    call_once "$@"
    case $CALL_STATUS in
      2??) return 0 ;;
      000 | 429 | 5??) call_log "attempt $attempt of $CALL_ATTEMPTS_MAX: $(call_verdict "$4")" ;;
      *)
        call_log "$(call_verdict "$4"): not retried"
        return 1
        ;;
    esac
    wait_s=$(call_wait_s "$attempt" "$5")
    waited_s=$((waited_s + wait_s))
    if ((attempt >= CALL_ATTEMPTS_MAX || waited_s > CALL_WAIT_TOTAL_MAX_S)); then
      call_log "given up after $attempt attempts"
      return 1
    fi
    sleep "$wait_s"
  done
}

call_verdict() {
  local said
  said=$(jq -r 'if type == "object" then .error // "" else "" end | tostring' "$1" 2>/dev/null | call_one_line) || said=
  printf 'the console answered %s%s' "$CALL_STATUS" "${said:+: $said}"
}
