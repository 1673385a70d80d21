"""DBOS on PostgreSQL: a run is a workflow of one step, started in the program that carries it out.

Run in the peers' virtualenv by `scripts.bench.peers`; BENCH_POSTGRES is PostgreSQL's address. The
callers are threads of that program, as its own front door would be, so none is paid for.
"""

import os
from importlib import import_module

from scripts.bench.peer_load import Starts, asked, load, step_started

dbos = import_module("dbos")


def main() -> None:
    """Start DBOS, and load it."""
    starts = Starts()
    config = {
        "name": "bench",
        "system_database_url": os.environ["BENCH_POSTGRES"],
        "run_admin_server": False,
        "log_level": "ERROR",
    }
    dbos.DBOS(config=config)
    step = dbos.DBOS.step()(step_started)

    def run(name: str) -> None:
        step(name)

    workflow = dbos.DBOS.workflow()(run)
    dbos.DBOS.launch()
    callers, seconds = asked()
    for each in callers:
        load(starts, lambda name: dbos.DBOS.start_workflow(workflow, name), each, seconds)
    dbos.DBOS.destroy()


if __name__ == "__main__":
    main()
