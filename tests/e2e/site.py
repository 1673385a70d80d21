"""A console and a stand-in for GitHub as real processes, and the people who use them.

Owns where they live and how a test speaks to them. What they stand for is the demo's setting: an
author, a second operator, and a stranger.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.protobuf.message import Message
from runink.core.atlas.v1 import audit_pb2_grpc, governance_pb2_grpc, playbook_pb2_grpc
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.clock import RandomIds, SystemClock
from core_console.governance.rootkey import KeyFile
from core_console.governance.tokens import issue
from core_console.governance.verify import Verification, verify
from core_console.model.codec import decode
from core_console.model.document import Document
from tests.e2e.processes import Fake, Process, environment, eventually, free_port

ORG = "example-org"
AGENTS_REPO = "core"
APP_ID = "4242"
CALL_S = 60.0

FINAL = frozenset(
    {
        pb.RUN_STATUS_SUCCEEDED,
        pb.RUN_STATUS_FAILED,
        pb.RUN_STATUS_REJECTED,
        pb.RUN_STATUS_CANCELLED,
        pb.RUN_STATUS_TIMED_OUT,
        pb.RUN_STATUS_EXPIRED,
    }
)


@cache
def app_key() -> bytes:
    """Return the App's private key: one for the whole test run, for making one takes a while."""
    key = generate_private_key(public_exponent=65_537, key_size=2_048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Caller:
    """One operator on one channel; `ask` calls the method that the request is named after."""

    def __init__(
        self, address: str, token: str = "", credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = (
            grpc.insecure_channel(address, options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options)
        )
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._stubs = (
            playbook_pb2_grpc.PlaybookServiceStub(self.channel),
            governance_pb2_grpc.GovernanceServiceStub(self.channel),
            audit_pb2_grpc.AuditServiceStub(self.channel),
        )

    def ask(self, request: Message, *, within_s: float = CALL_S) -> Any:  # noqa: ANN401 -- its response
        """Return the response; raise grpc.RpcError when the call is refused."""
        name = type(request).__name__.removesuffix("Request")
        stub = next(stub for stub in self._stubs if hasattr(stub, name))
        return getattr(stub, name)(request, timeout=within_s, metadata=self._metadata)

    def refused(self, request: Message) -> tuple[grpc.StatusCode, str]:
        """Return the code and the sentence of a call that must not succeed."""
        try:
            answer = self.ask(request)
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError(f"it was not refused: {answer}")

    def run(self, run_id: str) -> pb.Run:
        """Return the run as it is now."""
        run: pb.Run = self.ask(pb.GetRunRequest(id=run_id)).run
        return run

    def start(self, playbook_id: str, request_id: str = "") -> pb.Run:
        """Start a run by hand."""
        request = pb.RunNowRequest(playbook_id=playbook_id, request_id=request_id)
        run: pb.Run = self.ask(request).run
        return run

    def approve(self, run_id: str, step_id: str = "approve") -> pb.Run:
        """Approve a step."""
        request = pb.DecideApprovalRequest(
            run_id=run_id, step_id=step_id, decision=pb.APPROVAL_DECISION_APPROVE
        )
        run: pb.Run = self.ask(request).run
        return run

    def close(self) -> None:
        """Close the channel."""
        self.channel.close()


class Console:
    """A console's root, its two addresses, and the process that serves them, if one does."""

    def __init__(self, folder: Path, github: "StandIn | None" = None, **settings: str) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.grpc = f"127.0.0.1:{free_port()}"
        self.http = f"127.0.0.1:{free_port()}"
        self.settings = {
            "CONSOLE_APPFS_DIR": str(self.root),
            "CONSOLE_GRPC_ADDR": self.grpc,
            "CONSOLE_HTTP_ADDR": self.http,
            "CONSOLE_TICK_SECONDS": "1",
            **settings,
        }
        if github is not None:
            self.know(github)
        self.process: Process | None = None
        self._callers: list[Caller] = []

    def know(self, github: "StandIn") -> None:
        """Be configured for this GitHub from the next start on."""
        self.settings |= {
            "CORE_GH_APP_ID": APP_ID,
            "CORE_GH_APP_PRIVATE_KEY": app_key().decode(),
            "CORE_GITHUB_ORG": ORG,
            "CORE_AGENTS_REPO": AGENTS_REPO,
            "CORE_GITHUB_API_URL": github.url,
            "CORE_GITHUB_SERVER_URL": github.url,
        }

    @property
    def log(self) -> Path:
        """The file with the standard error of every process of this console."""
        return self.folder / "console.log"

    @property
    def document_path(self) -> Path:
        """The metadoc."""
        return self.root / "var/lib/atlas-playbooks"

    @property
    def audit_path(self) -> Path:
        """The chain."""
        return self.root / "var/log/audit"

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `core-console` with this console's settings to its end."""
        return subprocess.run(
            (sys.executable, "-m", "core_console", *arguments),
            env=environment(**self.settings, CORE_CONSOLE_URL=self.grpc, **variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=CALL_S,
            stdin=subprocess.DEVNULL,
        )

    def init(self) -> None:
        """Make the operator key."""
        done = self.command("init")
        assert done.returncode == 0, done.stderr

    def begin(self, time: Fake | None = None, **variables: str) -> Process:
        """Start `serve` and return its process without waiting."""
        faked = time.env if time else {}
        env = environment(**self.settings, **faked, **variables)
        self.process = Process((sys.executable, "-m", "core_console", "serve"), env, self.log)
        return self.process

    def start(self, time: Fake | None = None, **variables: str) -> Process:
        """Start `serve` and wait until it answers."""
        process = self.begin(time, **variables)
        said = process.first_line()
        expected = f"core-console serves gRPC on {self.grpc} and HTTP on {self.http}"
        assert said == expected
        return process

    def kill(self) -> None:
        """`kill -9`."""
        assert self.process is not None
        self.process.kill()

    def token(self, email: str, ttl: timedelta = timedelta(days=2)) -> str:
        """Sign a token with the root's key, as `core-console token` does."""
        key = KeyFile(self.root).current()
        assert key is not None
        now = SystemClock().now()
        return issue(email, ttl, key=key, now=now, token_id=RandomIds().new("TOK"))

    def caller(self, email: str = "") -> Caller:
        """Return a caller who is this operator, or nobody."""
        caller = Caller(self.grpc, self.token(email) if email else "")
        self._callers.append(caller)
        return caller

    def document(self) -> Document:
        """Return what is stored, read without the store's own code, which would tidy up."""
        head, _, body = self.document_path.read_bytes().partition(b"\n")
        assert head.split()[-1].decode() == sha256(body).hexdigest()
        return decode(body)

    def verified(self) -> Verification:
        """Verify the chain's file offline."""
        with self.audit_path.open("rb") as log:
            return verify(log)

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the chain's file, which must hold."""
        found = self.verified()
        assert found.intact, found.fault
        lines = self.audit_path.read_bytes().splitlines()
        return [msgspec.json.decode(line) for line in lines]

    def leftovers(self) -> list[Path]:
        """Return the temporary files in the root."""
        return [path for path in self.root.rglob("*") if re.search(r"\.tmp|\.new", path.name)]

    def close(self) -> None:
        """End the process and the channels."""
        for caller in self._callers:
            caller.close()
        if self.process is not None:
            self.process.close()


@contextmanager
def a_console(folder: Path, github: "StandIn | None" = None, **settings: str) -> Iterator[Console]:
    """Give a console with an operator key that is not started; it ends with the block."""
    console = Console(folder, github, **settings)
    console.init()
    try:
        yield console
    finally:
        console.close()


class StandIn:
    """The stand-in for GitHub as a process; `tree` is its agents repository, as shipped if None."""

    def __init__(
        self, folder: Path, *, console_http: str, tree: Path | None = None, time: Fake | None = None
    ) -> None:
        key = folder / "app-key.pem"
        key.touch(mode=0o600)
        key.write_bytes(app_key())
        arguments = [
            *(sys.executable, "-m", "core_console.standin", "--port", "0", "--app-id", APP_ID),
            *("--app-key", str(key), "--org", ORG, "--agents-repo", AGENTS_REPO),
            *("--console-url", f"http://{console_http}", "--state-dir", str(folder / "github")),
        ]
        if tree is not None:
            arguments += ["--workflows", str(tree)]
        env = environment(**(time.env if time else {}))
        self.process = Process(arguments, env, folder / "github.log")
        self.url: str = msgspec.json.decode(self.process.first_line())["url"]
        self._http = httpx.Client(base_url=self.url, timeout=CALL_S, trust_env=False)

    def tell(self, what: str, **body: object) -> Any:  # noqa: ANN401 -- the answer's JSON
        """Change the world."""
        answer = self._http.post(f"/_standin/{what}", json=body)
        assert answer.status_code in {200, 204}, answer.text
        return answer.json() if answer.content else None

    def fault(self, trouble: str, endpoint: str, **facts: int) -> None:
        """Let the next call of an endpoint go wrong."""
        self.tell("faults", trouble=trouble, endpoint=endpoint, **facts)

    def no_faults(self) -> None:
        """Forget the faults that have not happened."""
        self._http.delete("/_standin/faults")

    def seen(self, what: str) -> list[dict[str, Any]]:
        """Return what came to it: dispatches, comments, calls or runs."""
        found: list[dict[str, Any]] = self._http.get(f"/_standin/{what}").json()[what]
        return found

    def dispatches(self, run_id: str) -> int:
        """Return how many dispatches of this run were accepted."""
        return sum(each["client_payload"]["run_id"] == run_id for each in self.seen("dispatches"))

    def dispatch_calls(self) -> int:
        """Return how often anybody called the dispatch endpoint, whatever was answered."""
        return sum(each["path"].endswith("/dispatches") for each in self.seen("calls"))

    def comments(self, run_id: str) -> int:
        """Return how many comments of this run were posted."""
        return sum(run_id in each["body"] for each in self.seen("comments"))

    def token(self, kind: str = "app") -> str:
        """Mint a token for the organisation."""
        token: str = self.tell("tokens", kind=kind, org=ORG)["token"]
        return token

    def close(self) -> None:
        """End the process."""
        self._http.close()
        self.process.close()


_LISTENS_ELSEWHERE = """
name: elsewhere
on:
  repository_dispatch:
    types: [something-else]
permissions: {}
jobs:
  nothing:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    steps:
      - name: Do nothing
        run: "true"
"""


def silent_tree(folder: Path) -> Path:
    """Return an agents repository in which nothing listens to a dispatch of ours."""
    workflows = folder / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "elsewhere.yml").write_text(_LISTENS_ELSEWHERE)
    return folder


def detect(step_id: str = "detect", agent: str = "datagov", minutes: int = 15) -> pb.Step:
    """Return a step that dispatches an agent."""
    action = pb.DispatchAgent(agent=agent, timeout_minutes=minutes)
    return pb.Step(id=step_id, kind=pb.STEP_KIND_DETECT, dispatch_agent=action)


def approval(step_id: str = "approve", hours: int = 4) -> pb.Step:
    """Return a step that waits for an approval."""
    action = pb.RequireApproval(timeout_hours=hours)
    return pb.Step(id=step_id, kind=pb.STEP_KIND_VALIDATE, require_approval=action)


def comment(step_id: str = "notify", repo: str = AGENTS_REPO, issue: int = 1) -> pb.Step:
    """Return a step that comments on an issue."""
    action = pb.Notify(repo=repo, issue=issue)
    return pb.Step(id=step_id, kind=pb.STEP_KIND_NOTIFY, notify=action)


def written(author: Caller, *steps: pb.Step, name: str = "Watch the data") -> pb.Playbook:
    """Have the author write a playbook."""
    request = pb.CreatePlaybookRequest(playbook=pb.Playbook(name=name, steps=steps))
    playbook: pb.Playbook = author.ask(request).playbook
    return playbook


def activated(author: Caller, second: Caller, *steps: pb.Step, name: str = "Watch the data") -> str:
    """Have the author write a playbook and the second operator activate it; return its id."""
    draft = written(author, *steps, name=name)
    second.ask(pb.ActivatePlaybookRequest(id=draft.id, revision=draft.revision))
    return draft.id


def until(caller: Caller, run_id: str, reached: Callable[[pb.Run], bool]) -> pb.Run:
    """Return the run once it is as wanted."""

    def look() -> pb.Run | None:
        run = caller.run(run_id)
        return run if reached(run) else None

    found = eventually(look)
    assert found is not None
    return found


def ended(run: pb.Run) -> bool:
    """Say whether the run is final."""
    return run.status in FINAL


def step_of(run: pb.Run, step_id: str) -> pb.StepRun:
    """Return the run's step of that id."""
    return next(each for each in run.steps if each.step.id == step_id)
