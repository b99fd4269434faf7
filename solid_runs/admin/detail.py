"""What the page of one run shows: its facts, its texts and its timeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.display import (
    badge,
    clock_text,
    count_text,
    duration_text,
    exact_time,
    run_duration,
    run_tokens,
    time_element,
)
from solid_runs.admin.timelines import Row, Timeline, lay_out
from solid_runs.events import Step, timeline
from solid_runs.exceptions import RunNotFound

if TYPE_CHECKING:
    from solid_runs.mixin import AgentRunMixin

MOST_STEPS: Final = 1_000
MOST_CHARS: Final = 100_000
"""Of one text; what is longer is shown cut, and says so."""
OPEN_CHARS: Final = 1_500
"""A side text up to this length is shown unfolded."""
LONG_LABEL: Final = 32
"""A label past this may be cut by the style sheet, so it is among what unfolds."""


class Fact(NamedTuple):
    label: Any
    value: Any
    quiet: Any = ""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A titled text of the page; ``kind`` is its style, ``folded`` None for one without a fold."""

    title: Any
    text: str
    kind: str = "text"
    folded: bool | None = None
    more: str = ""


def facts(
    run: AgentRunMixin, now: datetime, *, content: bool, subject_url: str | None, trace_url: str
) -> list[Fact]:
    """Status, times and figures; what only the metadata knows is content."""
    known = run if content else _WithoutContent(run)
    going_on = gettext("going on") if run.in_progress and run.started_at else ""
    shown = [
        Fact(_("status"), badge(run.status)),
        Fact(_("subject"), run.subject, url=subject_url),
        Fact(_("agent"), " · ".join(_texts(run.agent_name, known.action))),
        Fact(_("model"), " · ".join(_texts(known.provider, known.model))),
        Fact(_("instructions"), known.instructions_codename, known.instructions_digest or ""),
        _moment(_("created"), run.created_at, now),
        _moment(_("started"), run.started_at, now),
        _moment(_("ended"), run.completed_at, now),
        Fact(_("duration"), run_duration(run, now), going_on),
        Fact(_("tokens"), run_tokens(run), _in_and_out(run)),
        Fact(_("trace"), run.trace_id, url=trace_url),
    ]
    return [fact for fact in shown if fact.value not in (None, "", "-")]


class _WithoutContent:
    """What the columns alone say, for somebody who may not see the metadata."""

    instructions_codename = instructions_digest = None

    def __init__(self, run: AgentRunMixin) -> None:
        names = {field.name for field in run._meta.fields}
        self.action = run.action_name
        self.provider = run.provider if "provider" in names else None
        self.model = run.model if "model" in names else None


def _texts(*values: Any) -> Iterable[str]:
    return (storable.text(value) for value in values if isinstance(value, str) and value)


def _moment(label: Any, value: datetime | None, now: datetime) -> Fact:
    if value is None:
        return Fact(label, None)
    return Fact(label, time_element(value, now), exact_time(value))


def _in_and_out(run: AgentRunMixin) -> str:
    if run.input_tokens is None and run.output_tokens is None:
        return ""
    return gettext("%(input)s in · %(output)s out") % {
        "input": count_text(run.input_tokens or 0),
        "output": count_text(run.output_tokens or 0),
    }


def blocks(run: AgentRunMixin) -> tuple[list[Block], list[Block]]:
    """The texts above the timeline, and those below it."""
    metadata, instructions = run.output_metadata, run.instructions
    if isinstance(metadata, Mapping) and instructions is not None:
        metadata = {key: value for key, value in metadata.items() if key != "instructions"}
    above = [
        _block(_("Error"), run.error_message, "error"),
        _block(_("Backtrace"), backtrace_text(run.error_backtrace), "code", fold=True),
        _block(_("Prompt"), run.input_prompt),
        _block(_("Output"), run.output),
    ]
    below = [
        _block(_("Instructions"), instructions, fold=True),
        _block(_("Parameters"), json_text(run.input_params), "code", fold=True),
        _block(_("Metadata"), json_text(metadata), "code", fold=True),
    ]
    return [block for block in above if block], [block for block in below if block]


def _block(title: Any, text: Any, kind: str = "text", *, fold: bool = False) -> Block | None:
    if not isinstance(text, str) or not text.strip():
        return None
    whole = storable.text(text)
    more = ""
    if len(whole) > MOST_CHARS:
        more = gettext("The first %(shown)s of %(all)s characters.") % {
            "shown": count_text(MOST_CHARS),
            "all": count_text(len(whole)),
        }
    folded = len(whole) > OPEN_CHARS if fold else None
    return Block(title, whole[:MOST_CHARS], kind, folded, more)


def json_text(value: Any) -> str:
    """A stored document for people to read; "" for an empty one."""
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(storable.json_value(value, max_depth=200), indent=2, ensure_ascii=False)


def backtrace_text(stored: Any) -> str:
    """Ten lines of text; older writers left a list of lines, or the JSON text of one."""
    if isinstance(stored, str) and stored.lstrip().startswith("["):
        try:
            stored = json.loads(stored)
        except (ValueError, RecursionError):
            return stored  # type: ignore[no-any-return]
    if isinstance(stored, list):
        return "\n".join(line if isinstance(line, str) else str(line) for line in stored)
    return stored if isinstance(stored, str) else ""


class Line(NamedTuple):
    """A row of the timeline, ready to be drawn."""

    row: Row
    style: str
    kind: str
    label: str
    offset: str
    duration: str
    note: Any
    detail: str


def timeline_lines(
    run: AgentRunMixin, now: datetime, *, content: bool
) -> tuple[Timeline, list[Line], int]:
    """The steps of the run on one axis, as lines, and the number of entries behind them."""
    try:
        entries = run.events_after(0)
    except RunNotFound:  # deleted while the page was made
        return Timeline(), [], 0
    laid_out = lay_out(
        timeline(entries),
        started_at=_aware(run.started_at),
        ended_at=_aware(run.completed_at),
        now=_aware(now) if run.in_progress else None,
        limit=MOST_STEPS,
    )
    lines = [_line(row, content, run.in_progress) for row in laid_out.rows]
    return laid_out, lines, len(entries)


KINDS: Final = {"llm": "run-k-llm", "tool": "run-k-tool", "agent": "run-k-agent"}
"""The colour of a bar by the kind of its step; any other kind is grey."""

ENDED_BADLY: Final = {"error", "failed"}
HIDDEN: Final = gettext_lazy("(hidden)")


def _line(row: Row, content: bool, in_progress: bool) -> Line:
    step = row.step
    label, detail = storable.text(step.label), storable.text(step.detail or "")
    if not content:
        label, detail = (str(HIDDEN) if step.is_message else label), ""
    if len(label) > LONG_LABEL or "\n" in label:
        detail = f"{label}\n{detail}".rstrip()
    return Line(
        row=row,
        style=_style(step),
        kind=storable.text(step.kind),
        label=label,
        offset="" if row.offset_ms is None else tick_text(row.offset_ms),
        duration="" if step.duration_ms is None else duration_text(step.duration_ms),
        note=_note(step, in_progress),
        detail=detail,
    )


def _style(step: Step) -> str:
    styles = [KINDS.get(step.kind, "run-k-other")]
    if step.status in ENDED_BADLY or (step.is_message and step.kind in ENDED_BADLY):
        styles.append("run-s-error")
    if step.is_open:
        styles.append("run-s-open")
    if step.is_message:
        styles.append("run-message")
    return " ".join(styles)


def _note(step: Step, in_progress: bool) -> Any:
    if step.is_open:
        return _("going on") if in_progress else _("never ended")
    if step.is_message or step.status in ("", "done"):
        return ""
    return format_html("{status}", status=storable.text(step.status))


def tick_text(ms: int) -> str:
    """A place on the axis: ``0 s``, ``1.5 s``, ``45 s``, ``2:30``."""
    if ms < 1_000 and ms % 100:
        return duration_text(ms)
    if ms < 120_000 and ms % 1_000 == 0:
        return gettext("%(number)s s") % {"number": ms // 1_000}
    return duration_text(ms) if ms < 60_000 else clock_text(ms)


def _aware(value: datetime | None) -> datetime | None:
    return timezone.make_aware(value) if value and timezone.is_naive(value) else value
