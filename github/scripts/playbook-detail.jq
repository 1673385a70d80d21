# Owns the one line of a step report: the agent's own line when there is a clean one, else the
# facts. At most 500 bytes, no control or direction characters, nothing like a credential: the
# patterns are the console's own (decide/screen.py), for it refuses a report that holds one.
def controls: [range(0; 32), range(127; 160), 8232, 8233];
def directions: [1564, 8206, 8207, range(8234; 8239), range(8294; 8298)];
def clean:
  (controls + directions) as $bad
  | explode | map(if IN($bad[]) then 32 else . end) | implode
  | gsub(" +"; " ") | ltrimstr(" ") | rtrimstr(" ");
def short: if utf8bytelength <= 500 then . else .[0:500] | until(utf8bytelength <= 497; .[0:-1]) + "…" end;
def like_a_credential:
  test("gh[pousr]_|github_pat_|AKIA|xox[abp]-|-----BEGIN|eyJ[A-Za-z0-9_-]{5,}\\.[A-Za-z0-9_-]{5,}\\.");

(env.FACTS | clean | short) as $facts
| ((env.AGENT_DETAIL // "")[0:4000] | clean) as $own
| if $own == "" then $facts
  elif $own | like_a_credential then "\($facts); the agent's own line is withheld, for it looks like a credential" | short
  else $own | short
  end
