"""`core-console report …`: read what the agents told the report doors last.

Owns this command, its way to the console's HTTP, and how a report looks on the screen. Never sends
a token in clear beyond this machine, never follows a redirect with it, and never prints one.
"""

import json
import os
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import click
import httpx
import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from core_console.addresses import is_loopback, url_fault
from core_console.cli.client import bearer
from core_console.cli.failure import Exit, Failed
from core_console.cli.help import Group
from core_console.cli.output import Form, say
from core_console.cli.refusal import SIGN_IN
from core_console.cli.tables import Column, facts, name, prose, table
from core_console.cli.times import instant
from core_console.model.reports import DatagovReport, JudgeReport, ReconReport, Report

DEFAULT_HTTP_URL = "http://127.0.0.1:8080"

_TIMEOUT_S = 30.0
"""As for any other read: seconds when the console is busy, never half a minute."""

_ANSWER_BYTES_MAX = 2 * 1024 * 1024
"""A report has at most 1 MiB (contract, section 7); twice that leaves room for what is said of it
and still bounds what anybody else at the address may send."""

_PROVENANCE = "core-console-provenance"

_DOORS: MappingProxyType[str, tuple[str, type[Report]]] = MappingProxyType(
    {
        "datagov": ("/api/data-governance-findings", DatagovReport),
        "recon": ("/api/rules-recon/report", ReconReport),
        "judge": ("/api/judgements", JudgeReport),
    }
)

_FINDINGS = (
    name("CONTROL"),
    Column("VERDICT"),
    name("DOMAIN", rank=1),
    name("CONNECTION"),
    prose("DETAIL"),
)
_VERDICTS = (name("RULE"), Column("VERDICT"), prose("DETAIL"))
_JUDGEMENTS = (name("ID"), Column("OUTCOME"), prose("REASON"))


class Shown(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a report door answers."""

    agent: str
    reported_by: str
    reported_at: datetime
    digest: str
    size_bytes: int
    attributes: dict[str, str]
    report: msgspec.Raw


class _Error(msgspec.Struct, frozen=True):
    error: str


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    provenance: str


@click.group(cls=Group)
def report() -> None:
    """Read the latest report of an agent.

    Example: core-console report get datagov
    """


@report.command("get")
@click.argument("agent", metavar="AGENT", type=click.Choice(list(_DOORS), case_sensitive=False))
@click.option(
    "--url",
    envvar="CORE_CONSOLE_HTTP_URL",
    default=DEFAULT_HTTP_URL,
    show_default=True,
    show_envvar=True,
    metavar="URL",
    help="The console's HTTP address; https:// beyond this machine.",
)
@click.option(
    "--ca",
    envvar="CORE_CONSOLE_CA",
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="PEM file of the authority that signed the console's certificate.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice([form.value for form in Form]),
    default=Form.TABLE.value,
    show_default=True,
    help="A table for people, or the door's answer as JSON.",
)
def get(agent: str, url: str, ca: Path | None, output: str) -> None:
    """Show the latest report of datagov, recon or judge, as its door took it.

    Exit code 1 when the agent has not reported yet.

    Example: core-console report get datagov
    """
    path, wanted = _DOORS[agent]
    base = _base(url or DEFAULT_HTTP_URL)
    answer = _asked(base, path, ca)
    if answer.status != HTTPStatus.OK:
        raise _refused(answer, base)
    try:
        shown = msgspec.json.decode(answer.body, type=Shown)
        found = msgspec.json.decode(shown.report, type=wanted)
        whole = msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise Failed(Exit.UNREACHABLE, f"what {base} answered is no report of {agent}") from None
    if output == Form.JSON.value:
        # ASCII alone: a character that a terminal would obey stays the escape that JSON has for it.
        click.echo(json.dumps(whole, indent=2))
    else:
        _show(shown, found, answer.provenance)


def _base(url: str) -> str:
    """Return the base URL; raise Failed when it is none, or not safe for a token."""
    base = url.strip().rstrip("/")
    fault = url_fault(base)
    if fault is not None:
        raise Failed(Exit.USAGE, f"CORE_CONSOLE_HTTP_URL {fault}, such as {DEFAULT_HTTP_URL}")
    return base


def _trust(ca: Path | None) -> ssl.SSLContext | bool:
    try:
        return True if ca is None else ssl.create_default_context(cafile=ca)
    except OSError as error:  # an SSLError is one: the file is no PEM
        why = "is no PEM file" if isinstance(error, ssl.SSLError) else "cannot be read"
        raise Failed(Exit.USAGE, f"CORE_CONSOLE_CA {why}") from None


def _asked(base: str, path: str, ca: Path | None) -> _Answer:
    """Return what the door answers; raise Failed when there is no answer."""
    # A proxy for the outside world has no way to this machine's own console.
    is_here = is_loopback(urlsplit(base).hostname or "")
    headers = {"accept-encoding": "identity", **bearer(os.environ.get("CORE_CONSOLE_TOKEN", ""))}
    try:
        with (
            httpx.Client(verify=_trust(ca), timeout=_TIMEOUT_S, trust_env=not is_here) as client,
            client.stream("GET", base + path, headers=headers) as response,
        ):
            body = _bounded(response, base)
            return _Answer(response.status_code, body, response.headers.get(_PROVENANCE, ""))
    except httpx.ConnectError:
        said = f"nothing that can be trusted answers at {base}; is core-console serve running?"
    except httpx.TimeoutException:
        said = f"the console at {base} did not answer in time; it may be busy"
    except httpx.HTTPError:
        said = f"{base} does not answer as HTTP; check CORE_CONSOLE_HTTP_URL"
    raise Failed(Exit.UNREACHABLE, said)


def _bounded(response: httpx.Response, base: str) -> bytes:
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > _ANSWER_BYTES_MAX:
            raise Failed(Exit.UNREACHABLE, f"{base} answers more than any report has")
    return bytes(body)


def _refused(answer: _Answer, base: str) -> Failed:
    """Return how the command ends after a status that is no success."""
    try:
        sentence = msgspec.json.decode(answer.body, type=_Error).error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        sentence = f"{base} answered HTTP status {answer.status} and no sentence of a console"
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Failed(Exit.UNREACHABLE, f"the console at {base} cannot answer now: {sentence}")
    lines = (SIGN_IN,) if answer.status == HTTPStatus.UNAUTHORIZED else ()
    return Failed(Exit.REFUSED, sentence, lines)


def _show(shown: Shown, found: Report, provenance: str) -> None:
    """Print who reported what and when, and then each item."""
    facts(_facts(shown, found, provenance))
    say("")
    columns, rows = _items(found)
    table(columns, rows, empty="the report has no items")


def _facts(shown: Shown, found: Report, provenance: str) -> Iterator[tuple[str, str]]:
    at = Timestamp()
    at.FromDatetime(shown.reported_at)
    yield "agent", shown.agent
    yield "reported by", shown.reported_by
    yield "at", instant(at)
    yield "digest", shown.digest
    yield "size", f"{shown.size_bytes:,} bytes"
    yield "attributes", ", ".join(f"{key}={value}" for key, value in shown.attributes.items())
    yield "caused by", found.caused_by_run_id or ""
    yield "state", provenance


def _items(found: Report) -> tuple[Sequence[Column], list[tuple[str, ...]]]:
    match found:
        case DatagovReport():
            return _FINDINGS, [
                (each.control, each.verdict, each.domain, each.connection, each.detail)
                for each in found.findings
            ]
        case ReconReport():
            return _VERDICTS, [(each.rule, each.verdict, each.detail) for each in found.verdicts]
        case JudgeReport():
            return _JUDGEMENTS, [(each.id, each.outcome, each.reason) for each in found.judgements]
