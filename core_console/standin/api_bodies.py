"""Reading a request's body the way GitHub does: JSON whatever the content type says.

Owns the bounds and the 400 and 422 of a body. Never forgives a body that GitHub refuses.
"""

import json
from typing import Any

from starlette.requests import Request

from core_console.standin.api_answers import Refusal

# Larger than anything that GitHub's own bounds let through.
_BODY_BYTES_MAX = 1024 * 1024

EVENT_TYPE_CHARS_MAX = 100
PAYLOAD_KEYS_MAX = 10
PAYLOAD_CHARS_MAX = 65_535
COMMENT_CHARS_MAX = 65_536


def _invalid(sentence: str) -> Refusal:
    return Refusal(422, f"Invalid request.\n\n{sentence}")


async def body_of(request: Request) -> bytes:
    """Return the body.

    Raises:
        Refusal: 413 when it is larger than 1 MiB.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_BYTES_MAX:
            raise Refusal(413, "Request Entity Too Large")
    return bytes(body)


async def object_of(request: Request) -> dict[str, Any]:
    """Return the body's JSON object; an empty body is an empty object.

    Raises:
        Refusal: 400 when it is not JSON, 422 when it is not an object.
    """
    body = await body_of(request)
    if not body:
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "Problems parsing JSON") from None
    if not isinstance(found, dict):
        raise _invalid(f"For 'links/0/schema', {json.dumps(found)[:80]} is not an object.")
    return found


def only(body: dict[str, Any], *keys: str) -> None:
    """Refuse a key that the call does not know.

    Raises:
        Refusal: 422.
    """
    strange = [key for key in body if key not in keys]
    if strange:
        named = ", ".join(json.dumps(key) for key in strange[:5])
        raise _invalid(f"{named} is not a permitted key.")


def text_of(body: dict[str, Any], key: str, *, chars_max: int) -> str:
    """Return a text that must be there.

    Raises:
        Refusal: 422 when it is absent, no text, empty or too long.
    """
    if key not in body:
        raise _invalid(f'"{key}" wasn\'t supplied.')
    value = body[key]
    if not isinstance(value, str):
        raise _invalid(f"For 'properties/{key}', {json.dumps(value)[:80]} is not a string.")
    if not value.strip() or len(value) > chars_max:
        raise _invalid(f"'{key}' must have 1 to {chars_max} characters.")
    return value


def payload_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the client_payload of a dispatch, {} when there is none.

    Raises:
        Refusal: 422 when it is not an object, has more than 10 keys, or is too large.
    """
    payload = body.get("client_payload", {})
    if not isinstance(payload, dict):
        shown = json.dumps(payload)[:80]
        raise _invalid(f"For 'properties/client_payload', {shown} is not an object.")
    if len(payload) > PAYLOAD_KEYS_MAX:
        raise _invalid(f"No more than 10 properties are allowed; {len(payload)} were supplied.")
    if len(json.dumps(payload, ensure_ascii=False, separators=(",", ":"))) > PAYLOAD_CHARS_MAX:
        raise Refusal(422, "client_payload is too large.")
    return payload
