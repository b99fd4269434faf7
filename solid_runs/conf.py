"""The one setting, ``SOLID_RUNS``: a dictionary, read where it is used."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

DEFAULTS: Final[dict[str, Any]] = {
    "ADJECTIVES": None,
    "AG_UI_ATTACH_LIMIT": 30,
    "AG_UI_BODY_BYTES": 5_000_000,
    "AG_UI_HEARTBEAT": 2,
    "AG_UI_INTERRUPT_TTL": None,
    "AG_UI_KEEP_ALIVE": 15,
    "AG_UI_OFFER": True,
    "AG_UI_STALL_AFTER": 60,
    "CLOCK": None,
    "COLUMN_LOG_ENTRIES": 10_000,
    "ENTRY_BYTES": 24_000,
    "NOUNS": None,
    "SUBJECTS": {},
    "TABLE_LOG_ENTRIES": 100_000,
    "THREADS_DETACHED_TTL": 3600,
    "THREADS_FINALISE": None,
    "THREADS_FINALISE_BUDGET": 30,
    "THREADS_PROBE": None,
    "THREADS_STALL_AFTER": 60,
}
"""Each key with its default.

``ADJECTIVES``, ``NOUNS``: word lists that replace those of the codenames.
``SUBJECTS``: what a run is about, as written in ``runnable_type`` → the label of a model here,
for example ``{"Document": "library.Document"}``.
``COLUMN_LOG_ENTRIES``, ``TABLE_LOG_ENTRIES``: how many entries a run's log takes, by where it is;
a marker follows the last one, and what comes later is left out. None: no cap.
``CLOCK``: what gives the stores their time, a callable or its dotted path; Django's clock if None.
``AG_UI_STALL_AFTER``: seconds of silence after which the owner of a run counts as gone.
``AG_UI_HEARTBEAT``: seconds between two signs of life of a streaming run.
``AG_UI_KEEP_ALIVE``: seconds without a frame after which a comment keeps the connection open.
``AG_UI_ATTACH_LIMIT``: seconds that a reconnecting client waits for the end of a running run.
``AG_UI_BODY_BYTES``: the largest request that an endpoint reads.
``AG_UI_OFFER``: whether a plain run on a thread that waits for answers gets them offered again;
if not it is refused. ``AG_UI_INTERRUPT_TTL``: seconds after which an interrupt expires for which
the agent gave no deadline; None: never.
``THREADS_DETACHED_TTL``: seconds that a run of a thread goes on while nobody watches, before the
reaper ends it. ``THREADS_STALL_AFTER``: seconds of silence after which the driver of a watched one
counts as gone. ``THREADS_PROBE``, ``THREADS_FINALISE``: a callable or its dotted path, called with
the record of a run: whether its agent has ended, and what is to be cleared away after it; none if
None. ``THREADS_FINALISE_BUDGET``: seconds that the latter may take.
``ENTRY_BYTES``: what one entry may take as JSON; its longest texts are cut. A column of jsonb holds
256 MiB, which the cap on entries times this one should stay below.
"""


def configured() -> dict[str, Any]:
    """What the host wrote, unchecked; the system check names keys that mean nothing."""
    return getattr(settings, "SOLID_RUNS", None) or {}


def setting(key: str) -> Any:
    return configured().get(key, DEFAULTS[key])
