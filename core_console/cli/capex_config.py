"""`core-console capex config …`: read and set the Go-Live date.

Owns these two commands.
"""

import click
from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.cli.capex_view import show_config
from core_console.cli.client import Connection, connected
from core_console.cli.help import Group
from core_console.cli.output import Page


@click.group(cls=Group)
def config() -> None:
    """Read and set the Go-Live date.

    Example: core-console capex config get
    """


@config.command("get")
@connected
def get_config(connection: Connection, page: Page) -> None:
    """Show the Go-Live date, and whether it is the default.

    Example: core-console capex config get
    """
    response = connection.call(connection.capex.GetConfig, pb.GetConfigRequest())
    page.answer(response, lambda found: show_config(found.config, found.provenance))


@config.command("set")
@click.option("--go-live", "go_live_date", metavar="DATE", help="The date, as 2027-03-31.")
@click.option("--default", "is_default", is_flag=True, help="Take the default date again.")
@connected
def set_config(
    connection: Connection, page: Page, *, go_live_date: str | None, is_default: bool
) -> None:
    """Set the Go-Live date, or take the default again.

    Example: core-console capex config set --go-live 2027-06-30
    """
    if bool(go_live_date) == is_default:
        raise click.UsageError("say --go-live DATE or --default")
    request = pb.UpdateConfigRequest(go_live_date=go_live_date or "")
    response = connection.call(connection.capex.UpdateConfig, request)
    page.answer(response, lambda found: show_config(found.config, found.provenance))
