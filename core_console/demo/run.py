"""`core-console demo`: the whole story in a temporary root, told as it happens.

Owns the setting: the folder, the keys, the two servers, the operators' tokens. The story itself
is in `story`.
"""

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from rich.console import Console as Screen
from rich.markup import escape

from core_console.demo import story
from core_console.demo.processes import DemoError, command, environment, free_port, server
from core_console.demo.stage import AUTHOR, SECOND, Stage, address_in

ORG = "example-org"
AGENTS_REPO = "core"
APP_ID = "4242"


def run_demo(*, keep: bool = False) -> int:
    """Tell the story; return 0 when every step happened and 1 when one did not."""
    screen = Screen(highlight=False, soft_wrap=True)
    began = time.monotonic()
    # Without this a terminated demo would leave its two servers behind.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="core-console-demo-") as folder,
            _stage(Path(folder), screen) as stage,
        ):
            story.tell(stage)
            screen.print(f"\n[bold]Every step happened, in {time.monotonic() - began:.1f} s.[/]")
            if keep:
                _stay(stage)
    except DemoError as error:
        screen.print(f"\n[bold red]This step did not happen:[/] {escape(str(error))}")
        return 1
    return 0


def _terminated(*_: object) -> None:
    raise SystemExit(1)


@contextmanager
def _stage(folder: Path, screen: Screen) -> Iterator[Stage]:
    """Set the stage: keys, the stand-in, the console, and a token for each operator."""
    key = _app_key(folder)
    grpc, http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    arguments = (
        *("core_console.standin", "--port", "0", "--app-id", APP_ID, "--app-key", str(key)),
        *("--org", ORG, "--agents-repo", AGENTS_REPO, "--console-url", f"http://{http}"),
        *("--state-dir", str(folder / "github")),
    )
    with server("stand-in for GitHub", arguments, environment(), folder) as ready:
        github = address_in(ready)
        settings = {
            "CONSOLE_APPFS_DIR": str(folder / "root"),
            "CONSOLE_GRPC_ADDR": grpc,
            "CONSOLE_HTTP_ADDR": http,
            "CONSOLE_TICK_SECONDS": "2",
            "CORE_ATLAS_ADMINS": f"{AUTHOR},{SECOND}",
            "CORE_GH_APP_ID": APP_ID,
            "CORE_GH_APP_PRIVATE_KEY_FILE": str(key),
            "CORE_GITHUB_ORG": ORG,
            "CORE_AGENTS_REPO": AGENTS_REPO,
            "CORE_GITHUB_API_URL": github,
            "CORE_GITHUB_GRAPHQL_URL": f"{github}/graphql",
            "CORE_GITHUB_SERVER_URL": github,
        }
        env = environment(**settings)
        _done("init", env)
        tokens = {
            operator: _done("token", env, "--email", operator, "--ttl", "1h").strip()
            for operator in (AUTHOR, SECOND)
        }
        with server("console", ("core_console", "serve"), env, folder):
            yield Stage(screen, folder, settings, tokens, grpc, http, github)


def _done(name: str, env: dict[str, str], *arguments: str) -> str:
    done = command((name, *arguments), env)
    if done.code != 0:
        raise DemoError(f"core-console {name}: {done.stderr.strip()}")
    return done.stdout


def _app_key(folder: Path) -> Path:
    """Make the App's key, for this demo alone."""
    key = generate_private_key(public_exponent=65_537, key_size=2_048)
    path = folder / "app-key.pem"
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def _stay(stage: Stage) -> None:
    """Print how to go on, and wait for Ctrl-C."""
    stage.screen.print(story.how_to_go_on(stage), markup=False)
    try:
        while True:
            time.sleep(3_600)  # noqa: TID251 -- a person decides when the demo ends
    except KeyboardInterrupt:
        stage.screen.print("\nThe demo ends.")
