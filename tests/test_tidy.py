"""Every file of the project keeps the rules of `tests/tidy.py`, and every rule can fail."""

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests import tidy
from tests.tidy import Source

ROOT = Path(__file__).resolve().parent.parent
GENERATED = PurePosixPath("proto/python")
UNDECODED = re.compile("[\ud800-\udfff]")
PICTURES = {".ico", ".png", ".woff2"}
# Made by a tool; a hash in it may spell anything.
LOCKS = {PurePosixPath("package-lock.json")}

# The one place of each entry point that may catch everything, and why.
BROAD_CATCHES = {
    "core_console/batch.py:decide_one": "a command that meets a bug must not spoil its batch",
    "core_console/doors/errors.py:__call__": "the doors' entry: an answer, and never a stack",
    "core_console/effects.py:_perform": "an effect's entry: the tick then abandons its claim",
    "core_console/engine.py:_commit": "the writer's entry: who waits is answered, the next goes on",
    "core_console/rpc/gate.py:_answer": "the gRPC entry: an answer, and never a stack",
    "core_console/ticker.py:_done": "the ticker's entry: one bad tick must not end all ticks",
}

SourceRule = Callable[[Source], Iterator[str]]
SOURCE_RULES: tuple[SourceRule, ...] = (
    tidy.too_long,
    tidy.imports_outwards,
    tidy.impure,
    tidy.sleeps,
    tidy.unexcused,
    tidy.skipped_silently,
)
TextRule = Callable[[PurePosixPath, str], Iterator[str]]
TEXT_RULES: tuple[TextRule, ...] = (tidy.names_a_host_or_a_machine, tidy.unfinished)


@cache
def project_files() -> tuple[PurePosixPath, ...]:
    """Name every file that is, or is about to be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (PurePosixPath(name) for name in names.split("\0") if name)
    return tuple(path for path in paths if (ROOT / path).is_file())


@cache
def texts() -> dict[PurePosixPath, str]:
    """Read every text file; what is none is read as far as it goes, and told below."""
    return {
        path: (ROOT / path).read_text(encoding="utf-8", errors="surrogateescape")
        for path in project_files()
        if path.suffix not in PICTURES
    }


@cache
def sources() -> tuple[Source, ...]:
    """Read every Python file that people write."""
    return tuple(
        Source(path, text)
        for path, text in texts().items()
        if path.suffix == ".py" and GENERATED not in path.parents
    )


def none_of(complaints: Iterable[str]) -> None:
    """Fail with every complaint on a line of its own."""
    if told := "\n".join(complaints):
        pytest.fail(told, pytrace=False)


def source(text: str, path: str = "core_console/decide/x.py") -> Source:
    return Source(PurePosixPath(path), text)


def test_there_is_something_to_judge() -> None:
    written = {str(found.path) for found in sources()}
    assert {"core_console/ports.py", "tests/test_tidy.py", "scripts/gen_proto.py"} <= written
    assert not any(path.startswith("proto/") for path in written)


def test_every_file_is_text_or_a_picture() -> None:
    none_of(f"{path}: is not UTF-8" for path, text in texts().items() if UNDECODED.search(text))


@pytest.mark.parametrize("rule", SOURCE_RULES, ids=lambda rule: rule.__name__)
def test_every_source_keeps(rule: SourceRule) -> None:
    none_of(complaint for found in sources() for complaint in rule(found))


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_every_text_keeps(rule: TextRule) -> None:
    written = texts().keys() - {path for path in texts() if GENERATED in path.parents}
    none_of(said for path in sorted(written - LOCKS) for said in rule(path, texts()[path]))


def test_every_test_can_fail() -> None:
    tests = [found for found in sources() if found.path.parts[0] == "tests"]
    shared = tidy.asserting(found for found in tests if not found.path.name.startswith("test_"))
    none_of(said for found in tests for said in tidy.proves_nothing(found, shared))


def test_no_lock_names_where_packages_come_from() -> None:
    for path in LOCKS:
        assert '"resolved"' not in texts()[path]
        none_of(tidy.names_a_host_or_a_machine(path, texts()[path]))


def test_every_module_of_the_package_opens_with_what_it_owns() -> None:
    packaged = (found for found in sources() if found.path.parts[0] in {"core_console", "scripts"})
    none_of(complaint for found in packaged for complaint in tidy.undescribed(found))


def test_no_module_has_a_name_that_says_nothing() -> None:
    none_of(said for found in sources() for said in tidy.vaguely_named(found.path))


def test_everything_is_caught_only_where_the_list_allows_it() -> None:
    none_of(
        complaint
        for found in sources()
        for complaint in tidy.catches_everything(found, BROAD_CATCHES)
    )


def test_the_list_of_broad_catches_names_only_what_exists() -> None:
    found = {
        f"{found.path}:{function}"
        for found in sources()
        for function, _ in tidy.broad_catches(found)
    }
    assert BROAD_CATCHES.keys() - found == set()


def test_every_page_links_to_what_is_there() -> None:
    pages = {path: text for path, text in texts().items() if path.suffix == ".md"}
    assert PurePosixPath("docs/development.md") in pages
    none_of(
        said
        for path, text in pages.items()
        for said in tidy.links_to_nothing(path, text, lambda found: (ROOT / found).exists())
    )


def test_nothing_handwritten_stands_among_the_generated() -> None:
    protos = {path.stem for path in project_files() if path.suffix == ".proto"}
    generated = {path: text for path, text in texts().items() if GENERATED in path.parents}
    assert len(generated) > 4 * len(protos) > 0
    none_of(
        complaint
        for path, text in generated.items()
        for complaint in tidy.handwritten(path, text, protos)
    )


def test_every_module_that_decides_has_its_own_tests() -> None:
    deciding = {
        found.path.stem
        for found in sources()
        if found.path.parent == PurePosixPath("core_console/decide") and tidy.needs_own_test(found)
    }
    tested = {found.path.stem for found in sources() if found.path.match("tests/decide/test_*.py")}
    none_of(
        f"decide/{name}.py: no test" for name in sorted(deciding) if f"test_{name}" not in tested
    )


LONG_FUNCTION = "def f() -> None:\n" + "    pass\n" * tidy.FUNCTION_LINES_MAX
SKIP = "import pytest\n{}\ndef test() -> None: ...\n"


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (tidy.too_long, "x = 1\n" * 500, "x = 1\n" * 501),
        (tidy.too_long, LONG_FUNCTION.replace("    pass\n", "", 1), LONG_FUNCTION),
        (tidy.too_long, "async def f() -> None: ...", f"async {LONG_FUNCTION}"),
        (tidy.undescribed, '"""Owns."""', "x = 1"),
        (tidy.impure, "import msgspec", "import os"),
        (tidy.impure, "from datetime import datetime", "from pathlib import Path"),
        (tidy.impure, "from core_console.model import run", "import asyncio"),
        (tidy.impure, "import re", "def f() -> None:\n    import structlog"),
        (tidy.impure, "def f() -> None: ...", "async def f() -> None: ..."),
        (tidy.impure, "opened = 1", "open('x')"),
        (tidy.imports_outwards, "from core_console.model import run", "import core_console.ports"),
        (tidy.imports_outwards, "import core_console.decide", "from core_console import engine"),
        (tidy.imports_outwards, "import grpc", "from core_console.store.file import FileStore"),
        (tidy.imports_outwards, "import os", "from core_console.demo import story"),
        (tidy.sleeps, "import asyncio\nasyncio.sleep(1)", "import time\ntime.sleep(1)"),
        (tidy.sleeps, "import time", "from time import sleep"),
        (tidy.unexcused, "x = 1  # noqa: E501 -- a table's row", "x = 1  # noqa"),
        (tidy.unexcused, "x = '# noqa'", "x = 1  # noqa: E501"),
        (tidy.unexcused, "x = 1  # noqa: E501, S603 -- its own reason", "x = 1  # noqa: E501 why"),
        (
            tidy.unexcused,
            "x = 1  # type: ignore[misc] # it is so",
            "x = 1  # type: ignore # so it is",
        ),
        (tidy.unexcused, "x = 1  # type: ignore[misc]  # it is so", "x = 1  # type: ignore[misc]"),
        (tidy.unexcused, "x = 1  # pragma: no cover -- not here", "x = 1  # pragma: no cover"),
        (tidy.skipped_silently, "pytest.skip('no browser here')", "pytest.skip()"),
        (tidy.skipped_silently, "pytest.skip(reason=why)", "pytest.skip('')"),
        (
            tidy.skipped_silently,
            SKIP.format("@pytest.mark.skipif(True, reason='not on this system')"),
            SKIP.format("@pytest.mark.skipif(True)"),
        ),
        (
            tidy.skipped_silently,
            SKIP.format("@pytest.mark.xfail(reason='a known fault')"),
            SKIP.format("@pytest.mark.xfail"),
        ),
    ],
)
def test_a_rule_tells_good_from_bad(rule: SourceRule, good: str, bad: str) -> None:
    assert list(rule(source(good))) == []
    assert len(list(rule(source(bad)))) == 1


def test_a_test_module_may_be_longer_than_a_module() -> None:
    assert list(tidy.too_long(source("x = 1\n" * 600, "tests/test_x.py"))) == []
    assert list(tidy.too_long(source("x = 1\n" * 601, "tests/test_x.py"))) != []


@pytest.mark.parametrize(
    ("path", "text", "allowed"),
    [
        ("core_console/rpc/x.py", "import core_console.engine", True),
        ("core_console/engine.py", "import core_console.rpc.entry", False),
        ("core_console/engine.py", "from core_console.store import file", False),
        ("core_console/engine.py", "from core_console import store", False),
        ("core_console/cli/serve.py", "from core_console.store import file", True),
        ("core_console/store/file.py", "from core_console.store import lock", True),
        ("core_console/store/file.py", "from core_console.githubapp import client", False),
        ("core_console/rpc/x.py", "from core_console.standin import world", False),
        ("core_console/demo/story.py", "from core_console.standin import world", False),
        ("core_console/novelty/x.py", "import os", False),
        ("tests/test_x.py", "from core_console.store import file", True),
    ],
)
def test_imports_point_inwards(path: str, text: str, *, allowed: bool) -> None:
    assert (list(tidy.imports_outwards(source(text, path))) == []) is allowed


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    try: ...\n    except Exception: ...",
        "def f():\n    try: ...\n    except BaseException: ...",
        "def f():\n    try: ...\n    except: ...",
        "def f():\n    try: ...\n    except (OSError, Exception) as e: ...",
        "def f():\n    try: ...\n    except builtins.Exception: ...",
        "def f():\n    with suppress(Exception): ...",
        "def f():\n    with contextlib.suppress(OSError, BaseException): ...",
        "async def f():\n    for x in y:\n        try: ...\n        except Exception: ...",
    ],
)
def test_a_broad_catch_is_found_and_can_be_allowed(text: str) -> None:
    bad = source(text)
    assert len(list(tidy.catches_everything(bad, {}))) == 1
    assert len(list(tidy.catches_everything(bad, {f"{bad.path}:other": "elsewhere"}))) == 1
    assert list(tidy.catches_everything(bad, {f"{bad.path}:f": "an entry"})) == []


def test_cleaning_up_and_raising_on_is_no_catch() -> None:
    raising = "try: ...\nexcept BaseException:\n    close()\n    raise{}"
    assert list(tidy.catches_everything(source(raising.format("")), {})) == []
    assert list(tidy.catches_everything(source(raising.format(" Other")), {})) != []


@pytest.mark.parametrize(
    ("text", "proves"),
    [
        ("def test_x(): assert f()", True),
        ("def test_x(): f()", False),
        ("async def test_x():\n    with pytest.raises(Refused): f()", True),
        ("def g(x): assert x\ndef f(): g(1)\ndef test_x(): f()", True),
        ("def g(x): return x\ndef f(): g(1)\ndef test_x(): f()", False),
        ("def test_x(): ...", False),
        ("def test_x(): shared.holds(1)", True),
        ("class TestX:\n    def test_x(self): f()", False),
    ],
)
def test_a_test_that_cannot_fail_is_found(text: str, *, proves: bool) -> None:
    shared = tidy.asserting([source("def holds(x): assert x", "tests/shared.py")])
    found = list(tidy.proves_nothing(source(text, "tests/test_x.py"), shared))
    assert (found == []) is proves


def test_a_named_catch_is_no_broad_one() -> None:
    named = source("try: ...\nexcept (OSError, ValueError): ...\nwith suppress(KeyError): ...")
    assert list(tidy.catches_everything(named, {})) == []


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("see https://docs.github.com/", True),
        ("index-url = https://" + "py" + "pi.org/simple", False),
        ("https://files." + "python" + "hosted.org/x.whl", False),
        ('"resolved": "https://registry.' + "npm" + 'js.org/x.tgz"', False),
        ("<root>/" + "work/lib", True),
        ("var/work/x", True),
        ("cd /" + "work/main", False),
        ("HOME=/" + "root/x", False),
        ("in '/" + "home/somebody/x'", False),
    ],
)
def test_hosts_and_machine_paths_are_found(line: str, *, allowed: bool) -> None:
    found = list(tidy.names_a_host_or_a_machine(PurePosixPath("x.md"), f"first\n{line}\n"))
    assert (found == []) is allowed
    assert all(complaint.startswith("x.md:2: ") for complaint in found)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("# say why", True),
        ("# TO" + "DO: later", False),
        ("x = 1  # FIX" + "ME", False),
        ("# ----" + "------", False),
        ("# === part " + "===", False),
        ("## A heading", True),
        ("---", True),
        ("| --- | --- |", True),
    ],
)
def test_notes_for_later_and_banners_are_found(line: str, *, allowed: bool) -> None:
    assert (list(tidy.unfinished(PurePosixPath("x.py"), line)) == []) is allowed


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("__init__.py", "", True),
        ("__init__.py", "x = 1", False),
        ("audit_pb2.py", "# Generated by protoc", True),
        ("audit_pb2_grpc.pyi", '"""\n@generated by a plugin."""', True),
        ("audit_pb2.py", "x = 1", False),
        ("gone_pb2.py", "# Generated by protoc", False),
        ("notes.md", "generated", False),
    ],
)
def test_the_handwritten_is_told_from_the_generated(name: str, text: str, *, allowed: bool) -> None:
    found = list(tidy.handwritten(GENERATED / name, text, {"audit"}))
    assert (found == []) is allowed


def test_a_link_to_nothing_is_found() -> None:
    page = "[a](there.md#part) [b](https://example.com/x) [c](#part) [d](gone.md)"
    judged = tidy.links_to_nothing(PurePosixPath("docs/x.md"), page, lambda p: p.name != "gone.md")
    assert list(judged) == ["docs/x.md: links to gone.md, which is not there"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("core_console/decide/limits.py", True),
        ("core_console/utils.py", False),
        ("tests/helpers/x.py", False),
        ("core_console/store/manager.py", False),
    ],
)
def test_vague_names_are_found(path: str, *, allowed: bool) -> None:
    assert (list(tidy.vaguely_named(PurePosixPath(path))) == []) is allowed


def test_only_a_module_with_functions_needs_its_own_tests() -> None:
    assert tidy.needs_own_test(source("def f() -> None: ..."))
    assert not tidy.needs_own_test(source("class Kind(Enum): ..."))
