"""The `core-console` command: one module per group of commands, put together here.

Owns nothing but the list of commands.
"""

import click

from core_console.cli import playbook, records, run, service


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="core-console")
def cli() -> None:
    """A governance console for autonomous agents.

    Commands that talk to a console read CORE_CONSOLE_URL (host:port) and CORE_CONSOLE_TOKEN.
    Exit codes: 0 done, 1 refused, 2 usage, 3 unreachable.
    """


for command in (
    service.init,
    service.serve,
    service.token,
    service.demo,
    playbook.playbook,
    run.run,
    run.approval,
    records.agents,
    records.events,
    records.decisions,
    records.audit,
):
    cli.add_command(command)
