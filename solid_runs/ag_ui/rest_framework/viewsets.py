"""What both viewsets have in common: the store that they act through."""

from __future__ import annotations

from typing import Any

from solid_runs.ag_ui.inbox.shelves import default_store
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.rest_framework.store_rows import StoreRowsViewSet


class StoreViewSet(StoreRowsViewSet):
    def get_store(self) -> DatabaseStore:
        """What answers and cancels go through."""
        return default_store()

    def decided_by(self) -> str:
        """Who is told to have answered or cancelled."""
        user: Any = self.request.user
        return str(user.get_username())
