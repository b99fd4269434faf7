from __future__ import annotations

from django.dispatch import Signal

run_interrupted = Signal()
"""Sent after the commit that ended a run with questions.

Arguments: ``record``, the RunRecord. The sender is the class of the store.
"""

interrupt_decided = Signal()
"""Sent after the commit that recorded the answer to an interrupt, once for each.

Arguments: ``interrupt``, the Interrupt with its answer; ``decided_by``, who gave it, or None;
``free``, whether no run holds the answer yet; ``record``, the run that asked. A host starts the
resuming run here when ``free`` is true and nobody's browser will. An answer that a run gives back
when it fails is not announced again, or an agent that always fails would be started for ever. The
sender is the class of the store.
"""
