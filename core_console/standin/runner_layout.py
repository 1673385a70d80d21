"""The agents repository: how the shipped files are laid out in it, and its head at a dispatch.

Owns the copying. Never changes the tree that it was given.
"""

import os
import shutil
import subprocess
from pathlib import Path

GIT_TIMEOUT_S = 60.0  # an agents repository is small; longer means that git asks for something

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_github() -> Path:
    """Return the folder of the shipped workflows, scripts and agents.

    Raises:
        FileNotFoundError: neither the wheel's copy nor the source tree's is there.
    """
    for folder in (_PACKAGE / "_github", _PACKAGE.parent / "github"):
        if (folder / "workflows").is_dir():
            return folder
    raise FileNotFoundError("the shipped workflows are not part of this installation")


def lay_out(github: Path, target: Path) -> None:
    """Copy the shipped files as an organisation does: `.github/` and, beside it, `agents/`."""
    shutil.copytree(github, target / ".github", ignore=lambda folder, _: _agents_of(github, folder))
    shutil.copytree(github / "agents", target / "agents")
    # An installer may have dropped the bits by which the workflows start the agents.
    for command in target.glob("agents/*/run"):
        command.chmod(0o755)


def _agents_of(github: Path, folder: str) -> set[str]:
    return {"agents"} if Path(folder) == github else set()


def take_snapshot(tree: Path, target: Path) -> str:
    """Copy a tree as one commit, as a checkout would see it, and return the commit's id."""
    if (tree / ".github" / "workflows").is_dir():
        shutil.copytree(tree, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    else:
        target.mkdir(parents=True)
        lay_out(tree, target)
    _git(target, "init", "--quiet", "--initial-branch=main")
    _git(target, "add", "--all", "--force")
    _git(target, "commit", "--quiet", "--message=The agents repository")
    return _git(target, "rev-parse", "HEAD").strip()


def _git(folder: Path, *arguments: str) -> str:
    """Run git without anybody's settings, at a fixed time: the same files are the same commit."""
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (
            ("NAME", "stand-in"),
            ("EMAIL", "stand-in@example.com"),
            ("DATE", "2026-01-01T00:00:00Z"),
        )
    }
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **who}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(  # noqa: S603 -- fixed arguments
        ("git", *arguments),  # noqa: S607 -- git is wherever PATH has it
        cwd=folder,
        env=env,
        check=True,
        capture_output=True,
        text=True,
        timeout=GIT_TIMEOUT_S,
    ).stdout
