"""What a verification of the audit chain is worth, in words and as an exit code.

Owns these sentences. The judgement is `governance.verify`'s; only what is no audit log at all is
said here.
"""

from pathlib import Path

from runink.core.atlas.v1 import audit_pb2

from core_console.cli.failure import Exit, Failed
from core_console.cli.output import Page, say
from core_console.governance.verify import verify

_HEAD_BYTES = 256 * 1024
"""A record has at most 66 KiB: even when the first few are damaged, one shows what the file is."""

_MARK = b'"prev_hash"'
"""In every record, and in no other kind of file."""


def verify_file(page: Page, path: Path) -> None:
    """Verify an exported log and print the verdict; raise Failed unless it is intact."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
            stream.seek(0)
            found = verify(stream)
    except OSError as error:
        raise Failed(Exit.USAGE, f"the log cannot be read: {error.strerror}") from None
    answer = audit_pb2.VerifyAuditChainResponse(
        intact=found.intact,
        records=found.records,
        last_hash=found.last_hash,
        first_bad_seq=found.first_bad_seq,
        fault=found.fault,
    )
    if not head:
        page.answer(answer, lambda _: say("0 records"))
        said = "the file is empty: an empty log proves nothing, for its records may have been cut"
        raise Failed(Exit.REFUSED, said)
    if _MARK not in head:
        said = "this is no audit log: it holds no record; a console keeps its log in var/log/audit"
        raise Failed(Exit.REFUSED, said)
    verify_here(page, answer)


def verify_here(page: Page, answer: audit_pb2.VerifyAuditChainResponse) -> None:
    """Print a verdict; raise Failed unless the chain is intact."""
    page.answer(answer, _show)
    if not answer.intact:
        raise Failed(Exit.REFUSED, "the chain is NOT intact")


def _show(answer: audit_pb2.VerifyAuditChainResponse) -> None:
    if answer.intact:
        say(f"intact: {answer.records} records, last hash {answer.last_hash}")
    else:
        say(f"record {answer.first_bad_seq} does not hold: {answer.fault}")
