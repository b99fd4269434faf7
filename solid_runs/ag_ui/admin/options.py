"""What both admins of this app have in common: the store that they act through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solid_runs.admin.store_rows import StoreRowsAdmin
from solid_runs.ag_ui.inbox.shelves import default_store

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.ag_ui.stores.database import DatabaseStore


class StoreAdmin(StoreRowsAdmin):
    """Shows rows that only a store writes; ``get_store()`` is that store."""

    template_folder = "admin/solid_runs_ag_ui"

    class Media:
        css = {"all": ["solid_runs_ag_ui/admin.css"]}

    def get_store(self) -> DatabaseStore:
        """What answers, releases and cancels go through."""
        return default_store()

    def decided_by(self, request: HttpRequest) -> str:
        """Who is told to have answered, released or cancelled."""
        user: Any = request.user
        return str(user.get_username())
