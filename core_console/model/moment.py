"""A point in time as every document holds it.

Owns one type: aware, so that two of them can always be compared. A text without a zone does not
decode, instead of failing whoever compares it later.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

Moment = Annotated[datetime, Meta(tz=True)]
