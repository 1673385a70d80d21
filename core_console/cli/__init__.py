"""The `core-console` command: one module per group of commands, put together here.

Owns nothing but the list of commands and its headings.
"""

import click

from core_console.cli import approval, capex, playbook, records, report, run, service, state
from core_console.cli.help import Root

_SECTIONS = {
    "Set up and serve": (service.init, service.token, service.serve, service.demo),
    "Playbooks and runs": (playbook.playbook, run.run, approval.approval, records.agents),
    "CapEx": (capex.capex,),
    "What happened": (records.events, report.report, records.decisions, records.audit),
    "The state at rest": (state.state,),
}


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="core-console")
def cli() -> None:
    """A governance console for autonomous agents.

    Commands that talk to a console read CORE_CONSOLE_URL (host:port of its gRPC) and
    CORE_CONSOLE_TOKEN. Answers are on standard output, a table for people or proto3 JSON
    with -o json; advice and errors are on standard error.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no answer, 130 ended by Ctrl-C.
    """


for _commands in _SECTIONS.values():
    for _command in _commands:
        cli.add_command(_command)

cli.sections = {
    title: [str(command.name) for command in commands] for title, commands in _SECTIONS.items()
}
