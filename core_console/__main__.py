"""The `core-console` command, also as `python -m core_console`."""

from core_console.cli import cli


def main() -> None:
    """Run the command line and exit with its code."""
    cli(prog_name="core-console")


if __name__ == "__main__":
    main()
