# Owns what a client_payload must look like. Reads the event file (with --slurp, so that an empty
# file is refused and not passed over); answers {agent, playbook_id, run_id, step_id, chain_depth}
# or stops with one sentence that never quotes the payload.
# \A and \z, because ^ and $ also match at a line break inside the text.
def text($name):
  if (.[$name] | type) == "string" then .[$name]
  else error("client_payload.\($name) is missing or is not a text") end;
def id($name):
  text($name)
  | if test("\\A[A-Za-z0-9._-]{1,64}\\z") and . != "." and . != ".." then .
    else error("client_payload.\($name) is not an id of 1 to 64 letters, digits, dots, underscores or dashes") end;
def depth:
  if (.chain_depth | type) == "number" and (.chain_depth | . == floor and . >= 0 and . <= 3)
  then .chain_depth
  else error("client_payload.chain_depth is not a whole number from 0 to 3") end;

if length != 1 or (.[0] | type) != "object" or (.[0].client_payload | type) != "object"
then error("the event holds no client_payload object")
else .[0].client_payload
end
| if text("agent") != $agent then error("client_payload.agent is not \($agent)") else . end
| {agent: $agent, playbook_id: id("playbook_id"), run_id: id("run_id"), step_id: id("step_id"),
   chain_depth: depth}
