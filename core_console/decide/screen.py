"""What no person and no agent may write: control characters, bidi overrides, credentials.

Owns the screening of texts. A violation names the field and the fault, never the value: the value
may be the very secret that must not travel further.
"""

import re

from core_console.decide.outcome import Violation

# C0 and C1 controls. A description, a prompt and a note may have lines and tabs, nothing else may.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_IN_PROSE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")

# The explicit direction marks, embeddings, overrides and isolates: they show a text as another.
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# A text that cannot be written as UTF-8 cannot be stored.
_SURROGATE = re.compile("[\ud800-\udfff]")

# GitHub's tokens, AWS key ids, Slack tokens, PEM blocks and JWTs (contract, section 2). A JWT is
# looked for once in each run of its letters: if the first `eyJ` of a run begins none, no later one
# does. Without that, a text of nothing but `eyJ` costs the square of its length.
_CREDENTIAL = re.compile(
    r"gh[pousr]_|github_pat_|AKIA|xox[abp]-|-----BEGIN"
    r"|(?<![A-Za-z0-9_-])(?>[A-Za-z0-9_-]*?eyJ)[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+\."
)


def size_bytes(value: str) -> int:
    """Return the length of `value` as UTF-8."""
    return len(value.encode("utf-8", "surrogatepass"))


def flaws(field: str, value: str, *, prose: bool = False) -> tuple[Violation, ...]:
    """Return what must not be in `value`; `prose` may have line breaks and tabs."""
    found = []
    if (_CONTROL_IN_PROSE if prose else _CONTROL).search(value):
        found.append(Violation(field, "holds a control character; remove it"))
    if _BIDI.search(value):
        found.append(Violation(field, "holds a bidi control character; remove it"))
    if _SURROGATE.search(value):
        found.append(Violation(field, "is not valid Unicode; send it as UTF-8"))
    if _CREDENTIAL.search(value):
        found.append(Violation(field, "holds what looks like a credential; remove it"))
    return tuple(found)


def text(
    field: str, value: str, *, bytes_max: int, prose: bool = False, required: bool = False
) -> tuple[Violation, ...]:
    """Return every fault of a text that is bounded in bytes; empty when it is fine."""
    if required and not value.strip():
        return (Violation(field, "is required; write why"),)
    if size_bytes(value) > bytes_max:
        return (Violation(field, f"has {size_bytes(value):,} bytes; at most {bytes_max:,}"),)
    return flaws(field, value, prose=prose)


def characters(
    field: str, value: str, *, least: int, most: int, prose: bool = False
) -> tuple[Violation, ...]:
    """Return every fault of a text that is bounded in characters; empty when it is fine."""
    if len(value.strip()) < least:
        return (Violation(field, "is required"),)
    if len(value) > most:
        return (Violation(field, f"has {len(value):,} characters; at most {most:,}"),)
    return flaws(field, value, prose=prose)
