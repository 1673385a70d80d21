"""System calls that go wrong when a test says so: the module `os` as the store's modules see it."""

import os
from collections.abc import Callable
from typing import Any

from core_console.store import durable, file, filelog

CALLS = frozenset(
    {"open", "lseek", "write", "fsync", "fdatasync", "rename", "unlink", "mkdir", "ftruncate",
     "posix_fadvise", "pread", "fstat", "lstat", "link", "close"}
)  # fmt: skip

MODULES = (durable, file, filelog)


def pass_by() -> None:
    """Let the call be made."""


class SystemCalls:
    """`os`, counting its calls; call number `at` is struck before or after it was made.

    `torn` makes that call, if it is a write, write two thirds of its bytes before it is struck;
    `bytes_max` is the most that any write takes and any read gives.
    """

    def __init__(
        self,
        at: int = 0,
        strike: Callable[[], None] = pass_by,
        *,
        after: bool = False,
        torn: bool = False,
        bytes_max: int = 0,
    ) -> None:
        self.made: list[str] = []
        self._at = at
        self._strike = strike
        self._after = after
        self._torn = torn
        self._bytes_max = bytes_max

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever `os` has
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401 -- passed on as they are
            self.made.append(name)
            struck = len(self.made) == self._at
            # The system frees a descriptor even when closing it reports an error.
            after = self._after or name == "close"
            if name == "write" and self._bytes_max:
                args = (args[0], args[1][: self._bytes_max])
            if name == "pread" and self._bytes_max:
                args = (args[0], min(args[1], self._bytes_max), args[2])
            if struck and self._torn and name == "write":
                real(args[0], args[1][: len(args[1]) * 2 // 3])
            if struck and not after:
                self._strike()
            result = real(*args, **options)
            if struck and after:
                self._strike()
            return result

        return call


def put_in_place(calls: object) -> None:
    """Let the store's modules make their system calls through `calls`; `os` undoes it."""
    for module in MODULES:
        module.os = calls  # type: ignore[attr-defined]  # the test's last inch


class Failing:
    """`os`, whose next call of each of these names is made and then reported as failed.

    A call of `unmade` is not made at all.
    """

    def __init__(self, made: frozenset[str], unmade: frozenset[str], error: int) -> None:
        self._left = set(made | unmade)
        self._unmade = unmade
        self._error = error

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever `os` has
        real = getattr(os, name)
        if name not in self._left:
            return real

        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401 -- passed on as they are
            self._left.discard(name)
            if name not in self._unmade:
                real(*args, **options)
            if not self._left:
                put_in_place(os)
            raise OSError(self._error, os.strerror(self._error))

        return call
