"""What a run is about: a row of another table, named by a type and a key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import connections, models, router

from solid_runs.columns import columns_of, fits
from solid_runs.conf import setting

if TYPE_CHECKING:
    from solid_runs.columns import AnyModel
    from solid_runs.mixin import AgentRunMixin


@dataclass(frozen=True)
class UnresolvedSubject:
    """A subject that has no counterpart here: its type is unknown, or its row is gone."""

    type: str
    id: str

    def __str__(self) -> str:
        return f"{self.type} {self.id}".strip()


def model_for(type_name: str) -> AnyModel | None:
    """The model that ``runnable_type`` names: by the setting SUBJECTS, else by its label."""
    label = setting("SUBJECTS").get(type_name, type_name)
    try:
        return apps.get_model(str(label))
    except (LookupError, ValueError):
        return None


def type_name_for(model: AnyModel) -> str:
    """What to write into ``runnable_type`` for this model: the reverse of model_for()."""
    concrete = model._meta.concrete_model or model
    for type_name in setting("SUBJECTS"):
        if model_for(type_name) is concrete:
            return str(type_name)
    return concrete._meta.label


def reference(run: AgentRunMixin) -> tuple[str, str] | None:
    """The type and key of what the run is about, as text; None for a run about nothing."""
    if run.runnable_type and run.runnable_id not in (None, ""):
        return str(run.runnable_type), str(run.runnable_id)
    if run.agent_id not in (None, ""):
        return "Agent", str(run.agent_id)
    return None


def set_subject(run: AgentRunMixin, subject: models.Model | None) -> None:
    """Point the run at a subject: the runnable where it has one, else the agent."""
    key = None if subject is None else subject.pk
    if "runnable_type" in columns_of(type(run)):
        run.runnable_type = None if subject is None else type_name_for(type(subject))
        run.runnable_id = key
        return
    agent = _agent_model(run)
    if agent is not None and subject is not None and not isinstance(subject, agent):
        raise TypeError(
            f"The subject of a {type(run).__name__} must be an instance of {agent.__name__}, "
            f"not {subject!r}."
        )
    run.agent_id = key


def subject_of(run: AgentRunMixin) -> models.Model | UnresolvedSubject | None:
    """The runnable when the run has one, else the agent, else None. Never raises."""
    named = reference(run)
    if named is None:
        return None
    if run._subject_cache is None or run._subject_cache[0] != named:
        prefetch_subjects([run])
    return run._subject_cache[1] if run._subject_cache else None


def prefetch_subjects(runs: Iterable[AgentRunMixin]) -> None:
    """Find the subjects of many runs with one query for each type.

    Keys are compared as text, so a varchar column holds integers and UUIDs alike.
    """
    by_type: dict[str, dict[str, list[AgentRunMixin]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        named = reference(run)
        if named is not None:
            by_type[named[0]][named[1]].append(run)
    for type_name, by_key in by_type.items():
        sample = next(iter(by_key.values()))[0]
        found = _found(_target(type_name, sample), by_key, sample)
        for key, members in by_key.items():
            subject = found.get(key) or UnresolvedSubject(type_name, key)
            for run in members:
                run._subject_cache = ((type_name, key), subject)


def _target(type_name: str, run: AgentRunMixin) -> AnyModel | None:
    own = None if run.runnable_type else _agent_model(run)
    return own or model_for(type_name)


def _agent_model(run: models.Model) -> AnyModel | None:
    """The model that a host's ForeignKey named ``agent`` points to."""
    agent = next((field for field in run._meta.concrete_fields if field.name == "agent"), None)
    return agent.related_model if agent is not None and agent.is_relation else None


def _found(
    model: AnyModel | None, keys: Iterable[str], run: AgentRunMixin
) -> dict[str, models.Model]:
    if model is None:
        return {}
    using = router.db_for_read(model, instance=run)
    rows, connection = model._base_manager.using(using), connections[using]
    pk, wanted = model._meta.pk, {}
    while pk.remote_field is not None:  # the parent's, under multi-table inheritance
        pk = pk.target_field  # type: ignore[attr-defined]
    for key in keys:
        try:
            value = pk.to_python(key)
        except (ValidationError, ValueError, TypeError, OverflowError):
            continue
        # "1_0" and "010" are numbers to Python, but no keys of the row 10.
        if not isinstance(value, int) or (str(value) == key and fits(pk, value, connection)):
            wanted[key] = value
    rows = rows.filter(pk__in=set(wanted.values()))
    by_pk = {row.pk: row for row in rows}
    return {key: by_pk[value] for key, value in wanted.items() if value in by_pk}
