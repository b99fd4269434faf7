"""The one setting, ``SOLID_RUNS``: a dictionary, read where it is used."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

DEFAULTS: Final[dict[str, Any]] = {
    "ADJECTIVES": None,
    "NOUNS": None,
    "SUBJECTS": {},
}
"""Each key with its default.

``ADJECTIVES``, ``NOUNS``: word lists that replace those of the codenames.
``SUBJECTS``: what a run is about, as written in ``runnable_type`` → the label of a model here,
for example ``{"Document": "library.Document"}``.
"""


def configured() -> dict[str, Any]:
    """What the host wrote, unchecked; the system check names keys that mean nothing."""
    return getattr(settings, "SOLID_RUNS", None) or {}


def setting(key: str) -> Any:
    return configured().get(key, DEFAULTS[key])
