"""Performs the four known actions as their pinned versions do, as far as the shipped files ask.

Owns their effects: the checkout, the App token with its revocation when the job ends, and the
artifacts of a run. Never keeps a token beyond the job that made it.
"""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import jwt
from msgspec import Struct

from core_console.ports import Clock
from core_console.standin.actions import ActionName
from core_console.standin.runner_records import JobLog

ARTIFACT_MAX_BYTES = 16_777_216  # a report is at most 1 MiB; recon's inputs fit well
ARTIFACTS_MAX = 10  # the shipped runs make at most two
API_TIMEOUT_S = 10.0  # GitHub itself cuts a request off at 10 s
MINT_RETRY_WAITS_S = (1.0, 2.0, 4.0)  # the action tries again three times when GitHub fails

# The action's own times: a clock 30 s fast is still believed, and 10 minutes is GitHub's most.
JWT_BACKDATED_S = 30
JWT_LIFETIME_S = 600


class ActionFault(Exception):  # noqa: N818 -- the action failed; its step does too
    """An action that failed, in one sentence without a secret."""


class Artifacts:
    """The artifacts of one run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: list[str] = []

    def put(self, name: str, source: Path) -> str:
        """Keep a file or a folder under a name and return the artifact's id.

        Raises:
            ActionFault: the name is taken, or it is too large or too many.
        """
        if name in self._names or len(self._names) >= ARTIFACTS_MAX:
            raise ActionFault(f"an artifact named {name} exists already, or there are too many")
        files = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
        if sum(path.stat().st_size for path in files) > ARTIFACT_MAX_BYTES:
            raise ActionFault(f"the artifact {name} is over {ARTIFACT_MAX_BYTES} bytes")
        self._names.append(name)
        place = self._folder / str(len(self._names))
        place.mkdir(parents=True)
        for path in files:
            kept = place / (path.name if path == source else path.relative_to(source))
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, kept)
        return str(len(self._names))

    def get(self, name: str, target: Path) -> None:
        """Copy an artifact into a folder.

        Raises:
            ActionFault: there is none of that name.
        """
        if name not in self._names:
            raise ActionFault(f"there is no artifact named {name}")
        place = self._folder / str(self._names.index(name) + 1)
        shutil.copytree(place, target, dirs_exist_ok=True)


class Desk(Struct, frozen=True):
    """What an action of one job works with."""

    workspace: Path
    snapshot: Path
    artifacts: Artifacts
    log: JobLog
    clock: Clock
    api_url: str
    repository: str
    posts: list[Callable[[], Awaitable[None]]]
    """What is done when the job ends, in reverse order."""


async def perform(name: ActionName, inputs: dict[str, str], desk: Desk) -> dict[str, str]:
    """Perform one action and return its outputs.

    Raises:
        ActionFault: it failed.
    """
    try:
        match name:
            case ActionName.CHECKOUT:
                shutil.copytree(desk.snapshot, desk.workspace, symlinks=True, dirs_exist_ok=True)
                return {}
            case ActionName.UPLOAD:
                return _upload(inputs, desk)
            case ActionName.DOWNLOAD:
                desk.artifacts.get(inputs["name"], desk.workspace / inputs["path"])
                return {"download-path": str(desk.workspace / inputs["path"])}
            case ActionName.APP_TOKEN:
                return await _make_token(inputs, desk)
    except (OSError, shutil.Error) as fault:
        raise ActionFault(f"{name} could not read or write its files") from fault


def _upload(inputs: dict[str, str], desk: Desk) -> dict[str, str]:
    source = desk.workspace / inputs["path"]
    if not source.exists():
        sentence = f"no files were found with the path {inputs['path']}"
        if inputs.get("if-no-files-found", "warn") == "error":
            raise ActionFault(sentence)
        desk.log.write(sentence)
        return {}
    return {"artifact-id": desk.artifacts.put(inputs["name"], source)}


async def _make_token(inputs: dict[str, str], desk: Desk) -> dict[str, str]:
    for required in ("client-id", "private-key"):
        if not inputs[required]:
            raise ActionFault(f"Input required and not supplied: {required}")
    permissions = {
        key.removeprefix("permission-"): value
        for key, value in inputs.items()
        if key.startswith("permission-")
    }
    async with _client(desk) as client:
        minted = await _retrying(client, inputs, permissions, desk)
    token = str(minted["token"])
    desk.log.mask(token)
    desk.posts.append(lambda: _revoke(token, desk))
    return {
        "token": token,
        "installation-id": str(minted["installation-id"]),
        "app-slug": str(minted["app-slug"]),
    }


def _client(desk: Desk) -> httpx.AsyncClient:
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    headers["User-Agent"] = "actions/create-github-app-token"
    return httpx.AsyncClient(
        base_url=desk.api_url,
        headers=headers,
        timeout=API_TIMEOUT_S,
        trust_env=False,
        verify=desk.api_url.startswith("https:"),  # reading the certificates takes a while
    )


async def _retrying(
    client: httpx.AsyncClient, inputs: dict[str, str], permissions: dict[str, str], desk: Desk
) -> dict[str, Any]:
    for wait_s in (*MINT_RETRY_WAITS_S, None):
        answer = await _mint(client, inputs, permissions, desk)
        if not isinstance(answer, int):
            return answer
        if wait_s is None or answer < httpx.codes.INTERNAL_SERVER_ERROR:
            raise ActionFault(f"GitHub answered {answer} to the request for an App token")
        desk.log.write(f"GitHub answered {answer}: trying again in {wait_s:.0f} s")
        await desk.clock.sleep(wait_s)
    raise ActionFault("GitHub gave no App token")


async def _mint(
    client: httpx.AsyncClient, inputs: dict[str, str], permissions: dict[str, str], desk: Desk
) -> dict[str, Any] | int:
    """Return the token's facts, or the status with which GitHub refused (503 for no answer)."""
    bearer = {"Authorization": f"Bearer {_app_jwt(inputs, desk.clock)}"}
    body = {"repositories": [desk.repository.split("/")[1]], "permissions": permissions}
    try:
        found = await client.get(f"/repos/{desk.repository}/installation", headers=bearer)
        if found.status_code != httpx.codes.OK:
            return found.status_code
        installation = found.json()
        path = f"/app/installations/{installation['id']}/access_tokens"
        minted = await client.post(path, headers=bearer, json=body)
        if minted.status_code != httpx.codes.CREATED:
            return minted.status_code
        facts = {"installation-id": installation["id"], "app-slug": installation["app_slug"]}
        return {"token": minted.json()["token"], **facts}
    except httpx.TransportError:
        return int(httpx.codes.SERVICE_UNAVAILABLE)
    except (ValueError, KeyError, TypeError) as fault:
        raise ActionFault("GitHub's answer is not what the action knows") from fault


def _app_jwt(inputs: dict[str, str], clock: Clock) -> str:
    issued = int(clock.now().timestamp()) - JWT_BACKDATED_S
    claims = {"iat": issued, "exp": issued + JWT_LIFETIME_S, "iss": inputs["client-id"]}
    try:
        return jwt.encode(claims, inputs["private-key"], algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError) as fault:
        raise ActionFault("private-key is not an RSA key that can be read") from fault


async def _revoke(token: str, desk: Desk) -> None:
    async with _client(desk) as client:
        try:
            answer = await client.delete(
                "/installation/token", headers={"Authorization": f"Bearer {token}"}
            )
        except httpx.TransportError:
            desk.log.write("the App token could not be revoked")
            return
    if answer.is_success:
        desk.log.write("Token revoked")
    else:
        desk.log.write(f"GitHub answered {answer.status_code} to the revocation of the App token")
