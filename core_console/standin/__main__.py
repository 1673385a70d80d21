"""`python -m core_console.standin`: the stand-in as a process of its own.

Owns the command line. Prints one JSON line when it is ready, and nothing else on stdout.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from core_console.standin.runner_layout import shipped_github
from core_console.standin.server import Options, serve
from core_console.standin.workflow import WorkflowFault


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m core_console.standin", description="A strict stand-in for GitHub."
    )
    parser.add_argument("--port", type=int, default=0, help="loopback port, 0 picks one")
    parser.add_argument("--app-id", type=int, default=4_242, help="the App's id")
    parser.add_argument("--app-key", type=Path, required=True, help="the App's key, PEM")
    parser.add_argument("--org", required=True, help="the organisation's login")
    parser.add_argument("--agents-repo", default="core", help="the agents repository's name")
    parser.add_argument("--workflows", type=Path, help="the github/ tree (default: as shipped)")
    parser.add_argument("--console-url", default="", help="the console's HTTP address")
    parser.add_argument("--server-url", default="", help="for links to runs (default: its own)")
    parser.add_argument("--state-dir", type=Path, required=True, help="where the runs work")
    return parser


def _options(arguments: list[str]) -> Options:
    given = _parser().parse_args(arguments)
    return Options(
        port=given.port,
        app_id=given.app_id,
        app_key=given.app_key.read_bytes(),
        org=given.org,
        agents_repo=given.agents_repo,
        workflows=given.workflows or shipped_github(),
        console_url=given.console_url,
        server_url=given.server_url,
        state_dir=given.state_dir,
    )


def _tell(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run the stand-in; return 0 after a signal, 1 when it could not start."""
    try:
        asyncio.run(serve(_options(arguments), _tell))
    except (OSError, ValueError, WorkflowFault) as error:
        sys.stderr.write(f"the stand-in cannot start: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
