"""Shellcheck every `run` block of the workflow files given as arguments.

Owns the taking apart of a workflow into shell texts. Judges nothing itself: a block that holds an
expression is read with the expression blanked out, as zizmor is the one to judge those.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def run_blocks(workflow: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield where each `run` block stands and its text."""
    for job_name, job in workflow["jobs"].items():
        for number, step in enumerate(job.get("steps", []), start=1):
            if "run" in step:
                yield f"job {job_name}, step {number}", step["run"]


def complaints(text: str) -> str:
    """Return what shellcheck says of a block, "" when nothing."""
    blanked = EXPRESSION.sub(lambda found: "_" * len(found.group()), text)
    command = [str(SHELLCHECK), "--shell=bash", "--format=gcc", "-"]
    # What is run is the pinned shellcheck of this virtualenv; the block is only its input.
    done = subprocess.run(command, input=blanked, text=True, capture_output=True, check=False)
    return done.stdout + done.stderr


def main() -> None:
    """Print every complaint with its place and exit 1 when there is one."""
    count = 0
    found = False
    for name in sys.argv[1:]:
        workflow = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        for place, text in run_blocks(workflow):
            count += 1
            if said := complaints(text):
                found = True
                print(f"{name}, {place}:\n{said}")
    print(f"shellcheck: {count} run blocks, {'see above' if found else 'no findings'}")
    sys.exit(found)


if __name__ == "__main__":
    main()
