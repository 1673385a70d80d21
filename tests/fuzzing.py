"""How many examples a fuzz test tries: few with every test run, many when `make fuzz` asks."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

_ASKED = int(os.environ.get("FUZZ_EXAMPLES", "0"))


def fuzzing(usual: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a Hypothesis test as one that `make fuzz` plays at length; `usual` is its number."""

    def marked(test: Callable[..., Any]) -> Callable[..., Any]:
        bounded: Callable[..., Any] = settings(max_examples=_ASKED or usual)(test)
        found: Callable[..., Any] = pytest.mark.fuzz(bounded)
        return found

    return marked
