from __future__ import annotations

from django.dispatch import Signal

run_status_changed = Signal()
"""Sent once for each committed change of a run's status, after the commit, on the row's database.

Arguments: ``run``, ``from_status``, ``to_status``, ``trace_id`` (the last three as they were when
the change was made) and ``using``, the database alias. The sender is the model whose table holds
the status, so a receiver connected to it also hears of changes made through a proxy or a child.
Never sent when a run is created, nor for a change that was rolled back. A receiver that raises is
logged and stops nobody else.
"""
