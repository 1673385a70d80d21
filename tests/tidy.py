"""The rules of the house that no linter knows: each takes a source and yields complaints.

Owns the rules; `test_tidy.py` puts them to every file of the project and proves that each of them
can fail. Never reads a file by itself: a rule judges the text that it is given.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TypeGuard

FUNCTION_LINES_MAX = 70  # one screen: what does not fit in view is not reviewed
MODULE_LINES_MAX = 500
TEST_LINES_MAX = 600  # tables of cases may be a little longer than code

VAGUE_NAMES = frozenset({"common", "helper", "helpers", "manager", "misc", "util", "utils"})

# How far out a part stands. A part imports its own layer's inner neighbours, never outwards.
LAYERS = {
    "model": 0,
    "addresses": 1,
    "decide": 1,
    "ports": 2,
    "clock": 3,
    "logs": 3,
    "settings": 3,
    "store": 3,
    "githubapp": 3,
    "governance": 3,
    "capex": 3,
    "engine": 4,
    "company": 4,
    "inbox": 4,
    "latest": 4,
    "writer": 4,
    "counts": 4,
    "metrics": 5,
    "state": 5,
    "batch": 4,
    "effects": 4,
    "raiser": 4,
    "recorder": 4,
    "reports": 4,
    "subscribers": 4,
    "ticker": 4,
    "rpc": 5,
    "doors": 5,
    "web": 5,
    "app": 6,
    "cli": 6,
    "__main__": 6,
    "standin": 7,
    "demo": 7,
}
# Chosen by whoever builds the application; everybody else knows the protocols in `ports` alone.
ADAPTERS = frozenset({"clock", "store", "githubapp"})
BUILDERS = frozenset({"app", "cli", "__main__", "settings", "standin", "demo"})
# Programs that stand beside the product.
BESIDE = frozenset({"standin", "demo"})

# All that a pure module may import: nothing here can read a clock, a file, chance or the network.
PURE_IMPORTS = frozenset(
    {
        "bisect", "calendar", "collections", "core_console", "croniter", "dataclasses", "datetime",
        "decimal", "enum", "functools", "hashlib", "heapq", "itertools", "math", "msgspec",
        "operator", "re", "string", "types", "typing", "unicodedata",
    }
)  # fmt: skip

# Put together from pieces, so that this file names none of them.
REGISTRY_HOST = re.compile(
    r"(?<![\w-])(?:{})\b".format(
        "|".join(
            r"\.".join(pieces)
            for pieces in (
                ("pypi", "org"),
                ("python" + "hosted", "org"),
                ("npmjs", "org"),
                ("npmjs", "com"),
                ("yarnpkg", "com"),
                ("deb", "debian", "org"),
                ("archive", "ubuntu", "com"),
                ("crates", "io"),
                ("golang", "org"),
                ("rubygems", "org"),
            )
        )
    )
)
MACHINE_PATH = re.compile(r"(?<![\w.<>(){}*~-])/(?:work|root|home|Users|opt/[a-z-]+)/")
UNFINISHED = re.compile(
    rf"\b(?:{'|'.join(('TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'))})\b"
)
BANNER = re.compile(r"^\s*(?:#|//)\s*[-=*~_]{3,}")
PAGE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
EXCUSE = re.compile(r"#\s*(?P<kind>(?:ruff: )?noqa|type: ignore|pragma: no \w+)")
EXCUSE_WITH_REASON = re.compile(
    r"#\s*(?:(?:ruff: )?noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)* (?:--|#) "
    r"|type: ignore\[[a-z-]+(?:, ?[a-z-]+)*\]  ?# "
    r"|pragma: no \w+ (?:--|#) )\w[^#]*\w"
)


@dataclass(frozen=True)
class Source:
    """A Python file: where it lies in the project, and its text."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return ast.parse(self.text, str(self.path))

    @property
    def part(self) -> str:
        """The package or module right below `core_console`, "" outside of it."""
        top, *rest = self.path.with_suffix("").parts
        return rest[0] if top == "core_console" and rest else ""

    def at(self, node: ast.stmt | ast.expr | ast.excepthandler, complaint: str) -> str:
        """Return the complaint with its place."""
        return f"{self.path}:{node.lineno}: {complaint}"


def too_long(source: Source) -> Iterator[str]:
    """A module or a function is over its limit of lines."""
    limit = TEST_LINES_MAX if source.path.parts[0] == "tests" else MODULE_LINES_MAX
    lines = len(source.text.splitlines())
    if lines > limit:
        yield f"{source.path}: {lines} lines, at most {limit}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield source.at(
                    node, f"{node.name} has {length} lines, at most {FUNCTION_LINES_MAX}"
                )


def undescribed(source: Source) -> Iterator[str]:
    """A module does not say what it owns."""
    if not ast.get_docstring(source.tree):
        yield f"{source.path}: opens with no docstring"


def vaguely_named(path: PurePosixPath) -> Iterator[str]:
    """A module or folder has a name that says nothing."""
    if vague := VAGUE_NAMES.intersection(path.with_suffix("").parts):
        yield f"{path}: {', '.join(sorted(vague))} says nothing of what is in it"


def imported(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Yield each module that is imported, with `from a import b` as `a.b`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node, f"{'.' * node.level}{node.module or ''}.{alias.name}"


def imports_outwards(source: Source) -> Iterator[str]:
    """A part imports one that stands further out, or an adapter that it should not know."""
    part = source.part
    if part in {"", "__init__"}:
        return
    if part not in LAYERS:
        yield f"{source.path}: {part} has no layer in the table of tests/tidy.py"
        return
    for node, name in imported(source):
        top, *rest = name.split(".")
        target = rest[0] if top == "core_console" and rest else ""
        if target not in LAYERS or target == part:
            continue
        if target in BESIDE:
            yield source.at(node, f"{part} imports {target}, which nothing else may")
        elif LAYERS[target] > LAYERS[part]:
            yield source.at(node, f"{part} imports {target}, which stands further out")
        elif target in ADAPTERS and part not in BUILDERS:
            yield source.at(
                node, f"{part} imports the adapter {target}: take the protocol in ports"
            )


def impure(source: Source) -> Iterator[str]:
    """A module of the rules or the model could reach the outside world."""
    if source.part not in {"decide", "model"}:
        return
    for node, name in imported(source):
        if name.split(".")[0] not in PURE_IMPORTS:
            yield source.at(node, f"imports {name}, which is not in the list of the pure")
    for leaf in ast.walk(source.tree):
        if isinstance(leaf, ast.AsyncFunctionDef):
            yield source.at(leaf, f"{leaf.name} is async")
        called = leaf.func if isinstance(leaf, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in {"open", "print", "input", "breakpoint"}:
            yield source.at(called, f"calls {called.id}")


def _is_broad(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(ast.unparse(name).split(".")[-1] in {"Exception", "BaseException"} for name in names)


def _swallows_everything(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler takes everything and keeps it; cleaning up and raising on is fine."""
    last = handler.body[-1]
    raises_on = isinstance(last, ast.Raise) and last.exc is None
    return _is_broad(handler.type) and not raises_on


def _suppresses_everything(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "suppress"
        and any(_is_broad(argument) for argument in node.args)
    )


def broad_catches(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the function that catches everything, and where it does."""
    for owner in ast.walk(source.tree):
        if not isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            continue
        name = "" if isinstance(owner, ast.Module) else owner.name
        for node in _own_nodes(owner):
            if isinstance(node, ast.ExceptHandler) and _swallows_everything(node):
                yield name, source.at(node, f"{name or 'the module'} catches everything")
            if _suppresses_everything(node):
                yield name, source.at(node, f"{name or 'the module'} suppresses everything")


def _own_nodes(owner: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below `owner` that belong to no function inside it."""
    for child in ast.iter_child_nodes(owner):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _own_nodes(child)


def catches_everything(source: Source, allowed: Mapping[str, str]) -> Iterator[str]:
    """Something is caught that nobody named; `allowed` is `path:function` → why it may."""
    for function, complaint in broad_catches(source):
        if f"{source.path}:{function}" not in allowed:
            yield complaint


def sleeps(source: Source) -> Iterator[str]:
    """A thread is put to sleep: the product asks its clock, a test waits for something."""
    if source.part in {"clock", "demo"}:  # the one place that may, and a program about programs
        return
    for node, name in imported(source):
        if name == "time.sleep":
            yield source.at(node, "imports time.sleep")
    for leaf in ast.walk(source.tree):
        if isinstance(leaf, ast.Call) and ast.unparse(leaf.func) == "time.sleep":
            yield source.at(leaf, "calls time.sleep")


def unexcused(source: Source) -> Iterator[str]:
    """A checker is silenced without a code or without a reason."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        for found in EXCUSE.finditer(token.string):
            if not EXCUSE_WITH_REASON.match(token.string, found.start()):
                kind = found["kind"]
                yield f"{source.path}:{token.start[0]}: {kind} needs its code and its reason"


def skipped_silently(source: Source) -> Iterator[str]:
    """A test is skipped or expected to fail, and nobody says why."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            reasons = [word.value for word in node.keywords if word.arg == "reason"]
            if name in {"pytest.skip", "pytest.xfail"}:
                reasons += node.args[:1]
            called = {"pytest.skip", "pytest.xfail", "pytest.importorskip", *_MARKS}
            if name in called and not any(_says_something(reason) for reason in reasons):
                yield source.at(node, f"{name} gives no reason")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator) in _MARKS:
                    yield source.at(decorator, f"{ast.unparse(decorator)} gives no reason")


_MARKS = frozenset({"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"})


def _called(function: ast.AST) -> Iterator[str]:
    """Yield the last word of everything that a function calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def asserting(sources: Iterable[Source], known: Collection[str] = ()) -> frozenset[str]:
    """Name the functions that fail when something does not hold, themselves or by a call."""
    found = {"raises", "fail", "warns", *known}
    calls: dict[str, set[str]] = {}
    for node in (node for source in sources for node in ast.walk(source.tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls.setdefault(node.name, set()).update(_called(node))
            if any(isinstance(leaf, ast.Assert) for leaf in ast.walk(node)):
                found.add(node.name)
    while more := {name for name, called in calls.items() if called & found} - found:
        found |= more
    return frozenset(found)


def proves_nothing(source: Source, shared: Collection[str] = ()) -> Iterator[str]:
    """A test cannot fail: neither it nor what it calls, here or in `shared`, asserts anything."""
    if not source.path.name.startswith("test_"):
        return
    proving = asserting([source], shared)
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_") and node.name not in proving:
            yield source.at(node, f"{node.name} asserts nothing")


def _says_something(reason: ast.expr) -> bool:
    return not isinstance(reason, ast.Constant) or bool(str(reason.value or "").strip())


def names_a_host_or_a_machine(path: PurePosixPath, text: str) -> Iterator[str]:
    """A file names a package registry's host, or a folder of somebody's machine."""
    for number, line in enumerate(text.splitlines(), start=1):
        if REGISTRY_HOST.search(line):
            yield f"{path}:{number}: names a package registry's host"
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: names a folder of a machine"


def unfinished(path: PurePosixPath, text: str) -> Iterator[str]:
    """A file holds a note to finish it later, or a banner."""
    for number, line in enumerate(text.splitlines(), start=1):
        if UNFINISHED.search(line):
            yield f"{path}:{number}: a note for later: file an issue instead"
        if BANNER.match(line):
            yield f"{path}:{number}: a banner: split the file or say it in a sentence"


def links_to_nothing(
    path: PurePosixPath, text: str, exists: Callable[[PurePosixPath], bool]
) -> Iterator[str]:
    """A page links to a file that is not there."""
    for target in PAGE_LINK.findall(text):
        if not exists(path.parent / target):
            yield f"{path}: links to {target}, which is not there"


def handwritten(path: PurePosixPath, text: str, protos: Iterable[str]) -> Iterator[str]:
    """A file among the generated was not generated from one of `protos`."""
    if path.name in {"__init__.py", "py.typed"}:
        if text.strip():
            yield f"{path}: must be empty"
        return
    made = re.fullmatch(r"(.+)_pb2(?:_grpc)?\.pyi?", path.name)
    if made is None or made[1] not in protos:
        yield f"{path}: no contract file makes it"
    elif "generated" not in text[:500].lower():
        yield f"{path}: does not say that it is generated"


def needs_own_test(source: Source) -> bool:
    """Say whether a module of the rules decides anything: mere declarations need no test."""
    return any(isinstance(node, ast.FunctionDef) for node in source.tree.body)
