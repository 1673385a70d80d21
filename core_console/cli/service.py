"""`core-console init | serve | token | demo`: the commands that need no running console.

Owns the sign-in key's life as a person sees it, and that every use of it is recorded before it
takes effect. Never prints a key; `token` prints a token and nothing else.
"""

import asyncio
import importlib
import os
import pwd
from datetime import timedelta

import click
import uvloop

from core_console.cli.failure import Exit, Failed
from core_console.cli.help import Command
from core_console.cli.output import say
from core_console.cli.preflight import check_ports, make_root, tell
from core_console.cli.times import span
from core_console.clock import RandomIds, SystemClock
from core_console.decide.identity import SignIn, is_admitted, normalise
from core_console.governance.authenticator import LOOK_AGAIN
from core_console.governance.chain import Chain
from core_console.governance.rootkey import KeyFile, RootKey, make_key, rotate_key
from core_console.governance.tokens import issue
from core_console.model.audit import Entry, Outcome
from core_console.ports import Fault
from core_console.settings import Settings, SettingsError, load, unknown_variables
from core_console.store.filelog import FileLog


def settings() -> Settings:
    """Return this environment's settings; raise Failed with one line per fault."""
    for line in unknown_variables(os.environ):
        click.echo(f"warning: {line}", err=True)
    try:
        return load(os.environ)
    except SettingsError as error:
        first, *rest = error.faults
        raise Failed(Exit.USAGE, first, rest) from None


@click.command(cls=Command)
@click.option("--rotate", is_flag=True, help="Make a new key: every token issued before ends.")
def init(*, rotate: bool) -> None:
    """Make the key that signs operator tokens; one that is there is never replaced.

    Example: core-console init
    """
    found = settings()
    make_root(found)
    try:
        say(_rotate(found) if rotate else _make(found))
    except Fault as fault:
        raise Failed(Exit.REFUSED, fault.message) from None


def _make(found: Settings) -> str:
    if KeyFile(found.root).current() is not None:
        return "the operator key is there already; nothing was changed"
    _record(found, "identity.key.create", "operator-key", "the operator key is made")
    if not make_key(found.root, RandomIds()):
        return "the operator key is there already; nothing was changed"
    return "the operator key is made: whoever can read it can act as anyone"


def _rotate(found: Settings) -> str:
    detail = "the operator key is replaced: every earlier token ends"
    _record(found, "identity.key.rotate", "operator-key", detail)
    rotate_key(found.root, RandomIds())
    # Whoever is told that it is done may rely on it: a console looks again after this long.
    SystemClock().pause(LOOK_AGAIN.total_seconds())
    return "the operator key is new: every token issued before has ended"


@click.command(cls=Command)
@click.option("--email", required=True, metavar="E", help="Whom the token names.")
@click.option(
    "--ttl",
    type=span,
    default="12h",
    show_default=True,
    help="How long it lives: 30m, 12h, 7d; at most 30d.",
)
def token(email: str, ttl: timedelta) -> None:
    """Issue an operator token, print it alone, and record that it was issued.

    Example: export CORE_CONSOLE_TOKEN=$(core-console token --email author@example.com --ttl 12h)
    """
    found = settings()
    try:
        key = KeyFile(found.root).current()
        if key is None:
            raise Failed(Exit.REFUSED, "there is no operator key yet: run core-console init")
        click.echo(_issue(found, key, email, ttl))
    except Fault as fault:
        raise Failed(Exit.REFUSED, fault.message) from None


def _issue(found: Settings, key: RootKey, email: str, ttl: timedelta) -> str:
    """Return a token after its issue is in the chain: what is not recorded is not handed out."""
    now = SystemClock().now()
    try:
        signed = issue(email, ttl, key=key, now=now, token_id=RandomIds().new("TOK"))
    except ValueError as error:
        raise Failed(Exit.USAGE, str(error)) from None
    normal = normalise(email) or ""
    if not is_admitted(normal, found.admission, sign_in=SignIn.LOCAL):
        raise Failed(Exit.REFUSED, f"{normal} is not admitted to this console")
    until = (now + ttl).strftime("%Y-%m-%d %H:%M:%S UTC")
    detail = f"a token for {normal} was issued by the OS user {_os_user()}; it expires at {until}"
    _record(found, "identity.token.issue", normal, detail)
    return signed


def _record(found: Settings, action: str, target: str, detail: str) -> None:
    clock = SystemClock()
    entry = Entry(
        at=clock.now(),
        actor=f"os:{_os_user()}",
        action=action,
        target=target,
        outcome=Outcome.SUCCESS,
        detail=detail,
        subject="identity",
    )
    log = FileLog(found.root / "var" / "log" / "audit")
    try:
        asyncio.run(Chain(log, clock).add([entry]))
    finally:
        log.close()


def _os_user() -> str:
    """Return the name of the user that runs this process, its number when it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@click.command(cls=Command)
def serve() -> None:
    """Run the console until SIGTERM; a bad setting stops it at once.

    Example: CONSOLE_APPFS_DIR=/srv/console core-console serve
    """
    found = settings()
    make_root(found)
    check_ports(found)
    tell(found)
    # Only this command needs the servers; the others start faster without them.
    app = importlib.import_module("core_console.app")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            loop.run(app.serve(found))
    except Fault as fault:
        raise Failed(Exit.REFUSED, fault.message) from None


@click.command(cls=Command)
@click.option("--keep", is_flag=True, help="Stay up afterwards and print how to go on.")
@click.pass_context
def demo(context: click.Context, *, keep: bool) -> None:
    """Play the main job through on real processes in a temporary root.

    Example: core-console demo --keep
    """
    # Nothing but this command may know the demo, and the service must not load it.
    scenario = importlib.import_module("core_console.demo.run")
    context.exit(scenario.run_demo(keep=keep))
