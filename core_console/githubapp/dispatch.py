"""One repository_dispatch to the agents repository.

Owns the body and its sentences. Never sends more than GitHub's bounds allow.
"""

from http import HTTPStatus

import msgspec

from core_console.githubapp.judge import Errand
from core_console.model.run import DispatchPayload

# The event type that the shipped workflows listen to.
EVENT_TYPE = "core-playbook"

# GitHub's bound on client_payload, in characters.
PAYLOAD_CHARS_MAX = 65_535


def dispatch_body(payload: DispatchPayload) -> bytes | None:
    """Return the request's body, None when the payload is larger than GitHub takes."""
    if len(msgspec.json.encode(payload)) > PAYLOAD_CHARS_MAX:
        return None
    return msgspec.json.encode({"event_type": EVENT_TYPE, "client_payload": payload})


def dispatch_errand(repository: str) -> Errand:
    """Return how the answers to a dispatch to `repository` (owner/name) are told."""
    return Errand(
        noun="dispatch",
        target=repository,
        accepted=HTTPStatus.NO_CONTENT,
        permission="contents: write",
        not_found=(
            f"GitHub shows the App no repository {repository}: check CORE_AGENTS_REPO, and that the"
            " App is installed on it"
        ),
        unknown="the dispatch may have been accepted: not sent again",
    )
