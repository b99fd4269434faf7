"""The one setting, ``SOLID_RUNS``: a dictionary, read where it is used."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

DEFAULTS: Final[dict[str, Any]] = {
    "ADJECTIVES": None,
    "COLUMN_LOG_ENTRIES": 10_000,
    "ENTRY_BYTES": 24_000,
    "NOUNS": None,
    "SUBJECTS": {},
    "TABLE_LOG_ENTRIES": 100_000,
}
"""Each key with its default.

``ADJECTIVES``, ``NOUNS``: word lists that replace those of the codenames.
``SUBJECTS``: what a run is about, as written in ``runnable_type`` → the label of a model here,
for example ``{"Document": "library.Document"}``.
``COLUMN_LOG_ENTRIES``, ``TABLE_LOG_ENTRIES``: how many entries a run's log takes, by where it is;
a marker follows the last one, and what comes later is left out. None: no cap.
``ENTRY_BYTES``: what one entry may take as JSON; its longest texts are cut. A column of jsonb holds
256 MiB, which the cap on entries times this one should stay below.
"""


def configured() -> dict[str, Any]:
    """What the host wrote, unchecked; the system check names keys that mean nothing."""
    return getattr(settings, "SOLID_RUNS", None) or {}


def setting(key: str) -> Any:
    return configured().get(key, DEFAULTS[key])
