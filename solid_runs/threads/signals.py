from __future__ import annotations

from django.dispatch import Signal

run_ended = Signal()
"""Sent after the commit that ended a run, once: an end that is corrected later is no other end.

Arguments: ``store``, by which the run can be read; ``run_id``; ``status``, a Status. The sender is
the class of the store.
"""
