"""The list of runs: what is loaded for a page, and what may be asked of it."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest

from solid_runs.admin.access import content_fields, subject_url
from solid_runs.admin.read_only import CappedChangeList
from solid_runs.subjects import prefetch_subjects
from solid_runs.summaries import INPUT_PREVIEW

PREVIEW: Final = "run_prompt_start"
"""The annotation that holds the start of the prompt: one character more than a preview shows."""
SUBJECT_URL: Final = "run_subject_url"


class RunChangeList(CappedChangeList):
    """Loads no big column, and the subjects of a page with one query for each type."""

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
        super().get_results(request)
        prefetch_subjects(self.result_list)
        for run in self.result_list:
            url = subject_url(self.model_admin.admin_site, request, run.subject)
            setattr(run, SUBJECT_URL, url)
