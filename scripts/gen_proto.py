"""Generate the Python code of the contract; `--check` proves that what is committed is current.

Owns `proto/python/` whole: everything below it is replaced. Never edits a `.proto`.
"""

import argparse
import filecmp
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "proto"
OUTPUT = SOURCE / "python"


def generate(output: Path) -> None:
    """Write messages, stubs and their type stubs below `output`; exit if protoc fails."""
    protos = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob("runink/**/*.proto"))
    outputs = [f"--{kind}_out={output}" for kind in ("python", "grpc_python")]
    outputs += [f"--{kind}_out=quiet:{output}" for kind in ("mypy", "mypy_grpc")]
    plugins = [
        f"--plugin={name}={Path(sys.executable).with_name(name)}"
        for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")
    ]
    includes = [f"-I{SOURCE}", f"-I{files('grpc_tools') / '_proto'}"]
    if protoc.main(["protoc", *plugins, *includes, *outputs, *protos]) != 0:
        sys.exit("protoc failed: see the lines above")
    for folder in {path.parent for path in output.rglob("*.py")}:
        for package in [folder, *folder.parents]:
            if package == output:
                break
            (package / "__init__.py").touch()
            (package / "py.typed").touch()


def differences(left: Path, right: Path) -> list[str]:
    """Name every file that is not the same, or only on one side."""
    names = {
        str(path.relative_to(top))
        for top in (left, right)
        for path in top.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    _, changed, missing = filecmp.cmpfiles(left, right, sorted(names), shallow=False)
    return sorted(changed + missing)


def main() -> None:
    """Generate in place, or compare with a fresh generation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        if check:
            stale = differences(fresh, OUTPUT)
            sys.exit(f"not what the generator makes: {', '.join(stale)}" if stale else 0)
        shutil.rmtree(OUTPUT, ignore_errors=True)
        shutil.copytree(fresh, OUTPUT)


if __name__ == "__main__":
    main()
