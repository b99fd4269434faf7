"""The list of runs: what is loaded for a page, and what may be asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest

from solid_runs.admin.access import content_fields, subject_url
from solid_runs.admin.display import count_text
from solid_runs.subjects import prefetch_subjects
from solid_runs.summaries import INPUT_PREVIEW

if TYPE_CHECKING:
    from collections.abc import Iterator

PREVIEW: Final = "run_prompt_start"
"""The annotation that holds the start of the prompt: one character more than a preview shows."""
SUBJECT_URL: Final = "run_subject_url"


class RunChangeList(ChangeList):
    """Loads no big column, and the subjects of a page with one query for each type."""

    is_capped = False

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Any]:
        queryset = super().get_queryset(request, exclude_parameters)
        unread = content_fields(self.model) - set(self.list_display)
        queryset = queryset.defer(*sorted(unread))
        if "prompt_preview" in self.list_display:
            queryset = queryset.annotate(**{PREVIEW: Left("input_prompt", INPUT_PREVIEW + 1)})
        return queryset

    def get_results(self, request: HttpRequest) -> None:
        try:
            super().get_results(request)
        except OverflowError as error:  # SQLite, for a number past 64 bits
            raise IncorrectLookupParameters(str(error)) from error
        self.is_capped = getattr(self.paginator, "is_capped", False)
        prefetch_subjects(self.result_list)
        for run in self.result_list:
            url = subject_url(self.model_admin.admin_site, request, run.subject)
            setattr(run, SUBJECT_URL, url)

    @property
    def elided_pages(self) -> Iterator[Any]:
        pages: Iterator[Any] = self.paginator.get_elided_page_range(self.page_num)
        return pages

    @property
    def count_text(self) -> str:
        return count_text(self.result_count)

    def get_ordering_field(self, field_name: Any) -> Any:
        """None for a column that is not offered for sorting, whatever the address asks for."""
        if field_name not in (self.sortable_by or ()):
            return None
        return super().get_ordering_field(field_name)
