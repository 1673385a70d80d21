"""The operations page holds: what it says to type runs, and it names every metric and no other."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.builders import AUTHOR
from tests.e2e.processes import environment, free_port
from tests.e2e.site import a_console, approval, written

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()


def test_what_the_page_says_to_type_runs_to_its_end(tmp_path: Path) -> None:
    (script,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    grpc = f"127.0.0.1:{free_port()}"
    env = environment(
        HOME=str(tmp_path),
        CONSOLE_APPFS_DIR=str(tmp_path / "root"),
        BACKUPS=str(tmp_path / "backups"),
        CONSOLE_GRPC_ADDR=grpc,
        CONSOLE_HTTP_ADDR=f"127.0.0.1:{free_port()}",
        CORE_CONSOLE_URL=grpc,
    )
    process = subprocess.Popen(
        ("bash", "-euo", "pipefail", "-c", f"{script}\necho reached-the-end"),
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
    assert said.rstrip().endswith("reached-the-end")
    assert said.count("all is well") == 2
    assert 'core_console_document_bytes{document="atlas-playbooks"}' in said
    assert re.search(r"^restored from the backup of .*: 0 runs ended$", said, re.MULTILINE)
    assert re.search(r"^intact: \d+ records", said, re.MULTILINE)


def test_the_page_names_every_metric_and_no_other(tmp_path: Path) -> None:
    (table,) = re.findall(r"<!-- metrics.*?-->\n(.*?)<!-- /metrics -->", PAGE, re.DOTALL)
    told = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    with a_console(tmp_path) as console:
        console.start()
        written(console.caller(AUTHOR), approval())
        text = httpx.get(f"http://{console.http}/metrics", trust_env=False).text
    families = {family.name for family in text_string_to_metric_families(text)}
    ours = {name for name in families if name.startswith("core_console_")}
    assert len(told) == len(set(told))
    assert set(told) == ours
    assert "process_resident_memory_bytes" in families
