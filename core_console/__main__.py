"""The `core-console` command, also as `python -m core_console`."""

import os

# gRPC's core writes lines of its own beside ours, and says no more than our errors do. It looks
# once, when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from core_console.cli import cli


def main() -> None:
    """Run the command line and exit with its code."""
    cli(prog_name="core-console")


if __name__ == "__main__":
    main()
