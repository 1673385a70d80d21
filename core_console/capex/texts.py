"""A cell inside a sentence or a list, where it must neither be endless nor steer a screen.

Owns how a cell is shown; the cell itself is never changed.
"""

IN_SENTENCE_CHARACTERS = 60  # a sentence stays a line
KEY_CHARACTERS = 64  # the longest well-formed ItemId
IN_TRACE_CHARACTERS = 500  # 500 rows of 9 such cells stay below the 16 MiB of a message


def clipped(text: str, characters: int) -> str:
    """Return at most so many characters of `text`; what cannot be printed is written as its code.

    Controls and direction marks count as unprintable: they show a text as another.
    """
    cut = text if len(text) <= characters else f"{text[: characters - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in cut)


def quoted(text: str) -> str:
    """Return the cell in quotes, as a message shows it; an empty one is called blank."""
    return f'"{clipped(text, IN_SENTENCE_CHARACTERS)}"' if text else "blank"
