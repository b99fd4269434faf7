"""The scope that a store is bound to."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from solid_runs.exceptions import InvalidIdentifier
from solid_runs.identifiers import join_scope, scope_key
from solid_runs.threads.exceptions import InvalidRecord

__all__ = ["SHARED", "join_scope", "key_of"]


class _Shared(Enum):
    SHARED = ""

    def __repr__(self) -> str:
        return "SHARED"


SHARED: Final = _Shared.SHARED
"""The scope of all who name none. No tenant has its key, so none is there by mistake."""


def key_of(scope: Any) -> str:
    """InvalidRecord for what cannot name a tenant, such as None."""
    if scope is SHARED:
        return ""
    try:
        return scope_key(scope)
    except InvalidIdentifier as error:
        raise InvalidRecord("scope", str(error)) from error
