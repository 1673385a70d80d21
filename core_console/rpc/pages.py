"""One page of a list: its size, its token, and the items that belong on it.

Owns the page tokens. A token names the last item that was shown, not how many came before it, so
an item that arrives or leaves between two pages neither repeats nor hides another one.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core_console.model.codec import canonical_json
from core_console.rpc.errors import invalid_field

PAGE_SIZE = 50
PAGE_SIZE_MAX = 200

_TOKEN_CHARACTERS_MAX = 2_048
"""The longest of ours holds a playbook's name of 120 characters and stays under 1,200."""

Position = tuple[int, str, str]
"""Where an item stands in its list: by number, then by text, then by id."""

_Item = TypeVar("_Item")

_NOTHING: Mapping[str, object] = MappingProxyType({})


class _Token(
    Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename=lambda name: name[0],
):
    """What a page token holds: the list and filters that it belongs to, and the last item.

    `basis` holds a digest for each thing that the list was made from, by its name.
    """

    kind: str
    filters: str
    position: Position
    basis: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_Token)


class Page(Struct, frozen=True, gc=False):
    """What a caller asks of a list; `after` is None for the first page."""

    size: int
    kind: str
    filters: str
    after: Position | None
    basis: dict[str, str] = {}


def read(
    kind: str,
    filters: object,
    *,
    page_size: int,
    page_token: str,
    basis: Mapping[str, object] = _NOTHING,
) -> Page:
    """Return the page that is asked for; raise RefusedError for a bad size or token.

    `filters` is anything that encodes as JSON: a token is good for the same filters only. So is
    each value of `basis`, by a name for people: a token dies when one of them changes.
    """
    if not 0 <= page_size <= PAGE_SIZE_MAX:
        raise invalid_field(
            "page_size", f"is {page_size}; it takes 1 to {PAGE_SIZE_MAX}, or 0 for {PAGE_SIZE}"
        )
    now = {name: _digest(value) for name, value in basis.items()}
    page = Page(page_size or PAGE_SIZE, kind, _digest(filters), None, now)
    return replace(page, after=_position(page_token, page)) if page_token else page


def _digest(value: object) -> str:
    return sha256(canonical_json(value)).hexdigest()[:16]


def _position(page_token: str, page: Page) -> Position:
    wrong = invalid_field(
        "page_token",
        "is no token of this list with these filters; start again without one",
    )
    if len(page_token) > _TOKEN_CHARACTERS_MAX:
        raise wrong
    try:
        data = base64.b64decode(page_token, altchars=b"-_", validate=True)
        token = _decoder.decode(data)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise wrong from None
    if (token.kind, token.filters) != (page.kind, page.filters):
        raise wrong
    if token.basis.keys() != page.basis.keys():
        raise wrong
    if changed := [name for name in page.basis if token.basis[name] != page.basis[name]]:
        said = f"is from before {' and '.join(changed)} changed; start again without one"
        raise invalid_field("page_token", said)
    return token.position


def token_after(page: Page, position: Position) -> str:
    """Return the token of the page that begins after this position."""
    token = _Token(page.kind, page.filters, position, page.basis)
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode("ascii")


def cut(
    items: Iterable[_Item],
    page: Page,
    position_of: Callable[[_Item], Position],
    *,
    newest_first: bool = False,
) -> tuple[list[_Item], str]:
    """Return the page's items in order, and the next page's token, "" on the last page."""
    placed = [(position_of(item), item) for item in items]
    if page.after is not None:
        after = page.after
        placed = [each for each in placed if (each[0] < after if newest_first else each[0] > after)]
    placed.sort(key=_place, reverse=newest_first)
    shown = placed[: page.size]
    more = token_after(page, shown[-1][0]) if len(placed) > page.size else ""
    return [item for _, item in shown], more


def _place(placed: tuple[Position, object]) -> Position:
    return placed[0]


def instant(at: datetime) -> int:
    """Return an instant as whole milliseconds, as positions hold it."""
    return round(at.timestamp() * 1_000)
