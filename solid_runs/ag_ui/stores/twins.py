"""The methods of a store for async code."""

from __future__ import annotations

from solid_runs.ag_ui.stores.running import RunMethods
from solid_runs.twins import twin


class AsyncTwins(RunMethods):
    areserve = twin(RunMethods.reserve)
    aadmit = twin(RunMethods.admit)
    afind = twin(RunMethods.find)
    astatus = twin(RunMethods.status)
    alatest_run = twin(RunMethods.latest_run)
    alatest_interrupted = twin(RunMethods.latest_interrupted)
    asave = twin(RunMethods.save)
    aheartbeat = twin(RunMethods.heartbeat)
    arequest_cancel = twin(RunMethods.request_cancel)
    astalled = twin(RunMethods.stalled)
    afail_stalled = twin(RunMethods.fail_stalled)
    aprune = twin(RunMethods.prune)
    afind_interrupt = twin(RunMethods.find_interrupt)
    aredeem_interrupt = twin(RunMethods.redeem_interrupt)
    aanswer = twin(RunMethods.answer)
    aresume = twin(RunMethods.resume)
    asettle = twin(RunMethods.settle)
    arelease = twin(RunMethods.release)
    aabandon = twin(RunMethods.abandon)
    arelease_settled = twin(RunMethods.release_settled)
