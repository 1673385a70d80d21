"""What a released version wrote is read for ever, and written back as it was."""

from pathlib import Path

import pytest

from core_console.decide.status import FINAL
from core_console.model import codec
from core_console.model.document import FORMAT
from tests.replay.documents import FOLDER

FILES = sorted(FOLDER.glob("format-*.json"))


def test_the_present_format_has_its_file() -> None:
    assert FOLDER / f"format-{FORMAT}.json" in FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_document_of_a_released_format_still_loads(path: Path) -> None:
    document = codec.decode(path.read_bytes())
    assert (len(document.playbooks), len(document.running), len(document.finished)) == (3, 2, 6)
    assert {run.status for run in document.finished.values()} == FINAL
    for playbook in document.playbooks.values():
        assert codec.spec_digest(playbook.spec) == playbook.spec_digest


def test_a_document_of_the_present_format_is_written_back_as_it_was() -> None:
    data = (FOLDER / f"format-{FORMAT}.json").read_bytes()
    assert codec.encode(codec.decode(data)) == data
