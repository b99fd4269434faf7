"""Scopes and ids as solid_runs.identifiers checks them, refused as this app refuses things."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec

from solid_runs import identifiers
from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.exceptions import InvalidIdentifier

__all__ = ["MOST_CHARS", "identifier", "join_scope", "scope_key"]

P = ParamSpec("P")

MOST_CHARS: Final = identifiers.MOST_CHARS
"""What a thread id, a run id, an interrupt id or a scope may take."""


def _checked(check: Callable[P, str]) -> Callable[P, str]:
    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return check(*args, **kwargs)
        except InvalidIdentifier as error:
            raise ConfigurationError(str(error)) from error

    return checked


scope_key = _checked(identifiers.scope_key)
identifier = _checked(identifiers.identifier)
join_scope = _checked(identifiers.join_scope)
