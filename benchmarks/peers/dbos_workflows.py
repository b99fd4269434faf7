"""A workflow without steps is called in the process that launched DBOS: its row is inserted as
pending with the inputs and updated with the output. It has no state between waiting and running,
and claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from dbos import DBOS, SetWorkflowID
from sqlalchemy import URL

from benchmarks.peers import address
from benchmarks.turns import Way
from benchmarks.whole_runs import ANSWER, PROMPT


@contextmanager
def recording() -> Iterator[Way]:
    where = address()
    url = URL.create(
        "postgresql",
        username=where.pop("user"),
        password=where.pop("password", None),
        database=where.pop("dbname"),
        query=where,
    )
    DBOS(
        config={
            "name": "benchmarks",
            "system_database_url": url.render_as_string(hide_password=False),
            "log_level": "ERROR",
        }
    )

    @DBOS.workflow()
    def answer(prompt: str) -> str:
        return ANSWER

    DBOS.launch()
    try:
        number = str(uuid4())
        with SetWorkflowID(number):
            answer(PROMPT)
        stored = DBOS.get_workflow_status(number)
        assert stored is not None
        assert (stored.status, stored.output) == ("SUCCESS", ANSWER)
        yield lambda: answer(PROMPT)
    finally:
        DBOS.destroy(destroy_registry=True)
