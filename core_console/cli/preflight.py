"""What `serve` looks at before it starts, and what it tells the person who started it.

Owns the sentences about the folder, the ports and the key, each naming its setting. Never prints
on standard output: the line that says ready is the console's own.
"""

import asyncio
import errno
import os
import socket
from pathlib import Path

import click

from core_console.addresses import Address
from core_console.cli.failure import Exit, Failed, printable
from core_console.governance.rootkey import KeyFile
from core_console.model.codec import DocumentError, decode
from core_console.ports import Fault
from core_console.settings import Settings
from core_console.store.durable import make_folder
from core_console.store.file import FileDocument

_ROOT = "CONSOLE_APPFS_DIR"
_DOCUMENT = Path("var/lib/atlas-playbooks")

_BINDING = {
    errno.EADDRINUSE: "another process has it: end it, or set another {name}",
    errno.EADDRNOTAVAIL: "it is no address of this machine: set another {name}",
    errno.EACCES: "this user may not: set {name} to a port from 1024 on",
}


def make_root(found: Settings) -> None:
    """Make the root's folder; raise Failed when it cannot be used."""
    try:
        make_folder(found.root)
    except OSError as error:
        raise Failed(Exit.USAGE, f"{_ROOT} cannot be created: {error.strerror}") from None
    if not os.access(found.root, os.R_OK | os.W_OK | os.X_OK):
        raise Failed(Exit.USAGE, f"{_ROOT} names a folder that this user cannot write to")


def check_ports(found: Settings) -> None:
    """Raise Failed with a line for each address that cannot be listened on."""
    addresses = {"CONSOLE_GRPC_ADDR": found.grpc_addr, "CONSOLE_HTTP_ADDR": found.http_addr}
    faults = [
        f"{address} cannot be bound: {fault.format(name=name)}"
        for name, address in addresses.items()
        if (fault := _binding_fault(address))
    ]
    if faults:
        raise Failed(Exit.REFUSED, faults[0], faults[1:])


def _binding_fault(address: Address) -> str:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family).close()
    except socket.gaierror:
        return "no host of this machine has that name: set another {name}"
    except OSError as error:
        return _BINDING.get(error.errno or 0, "the machine refuses it: set another {name}")
    return ""


async def _is_readable(found: Settings) -> bool:
    """Say whether the stored playbooks can be read; why they cannot the console says itself."""
    document = FileDocument(found.root / _DOCUMENT)
    try:
        data = (await document.load()).data
        if data:
            decode(data)
    except (Fault, DocumentError):
        return False
    finally:
        document.close()
    return True


def tell(found: Settings) -> None:
    """Say on standard error what the console stands on, and warn when nobody can sign in.

    Of a document that stops the start nothing is said here, so that its one sentence stands alone.
    """
    if not asyncio.run(_is_readable(found)):
        return
    _say(f"the state is in {found.root}")
    if found.github is None:
        _say("no GitHub App is configured: a step that needs GitHub will fail and say so")
    else:
        _say(f"a GitHub App is configured: agents are in the repository {found.github.agents_repo}")
    try:
        if KeyFile(found.root).current() is None:
            _say(
                "warning: there is no operator key, so everybody may read and nobody may write; "
                "run core-console init"
            )
    except Fault as fault:
        # The console itself decides whether it starts with such a key.
        _say(f"warning: {fault.message}")


def _say(line: str) -> None:
    click.echo(printable(line), err=True)
