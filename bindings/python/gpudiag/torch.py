# SPDX-License-Identifier: Apache-2.0
"""gpudiag in a PyTorch script::

    import gpudiag.torch

That is all: the session starts when this process first uses CUDA, and an optimizer step ends an
iteration. Under ``gpudiag run`` not even that line is needed. For those who want more::

    gpudiag.torch.start(log="every")            # now, with options
    with gpudiag.torch.range("next batch", cause="data_loading"): ...
    gpudiag.torch.step()                        # an iteration ends here
    gpudiag.torch.on_iteration(print)           # each iteration as a dict
    gpudiag.torch.last(); gpudiag.torch.report()

Nothing here raises but for wrong arguments: trouble with the profiling is one line on stderr that
begins with ``gpudiag ``, and the job runs on.
"""

from __future__ import annotations

import multiprocessing
from typing import Any, Callable, Dict, Optional

from . import _hooks, _native, _operators, _session, _state
from ._hooks import _wrap
from ._hooks import profiler as _profiler
from ._session import on_iteration, range

__all__ = ["start", "stop", "step", "range", "on_iteration", "last", "report", "profile", "active", "info"]

try:
    import torch as _torch
except ImportError:  # the rest of the package works
    _torch = None  # type: ignore[assignment]

_hooked = False


def _install_hooks(operators: bool) -> None:
    global _hooked
    if _torch is None or _hooked:
        return
    _hooked = True
    _hooks.install()
    _hooks.add(_operators.install(_torch.__version__, operators))


def start(ops: Optional[bool] = None, **options: Any) -> bool:
    """Starts the session of this process now, or joins the one that is there (injected by
    ``gpudiag run``), and installs the hooks. Options are those of docs/configuration.md by their names
    without ``GPUDIAG_``, in small letters. Returns whether a session records.

    :param ops: record operators (aten::mm) of one iteration in 16 as well; None: as GPUDIAG_OPS says
    :raises TypeError: for an option that there is not, or of the wrong type
    """
    if ops is not None and not isinstance(ops, bool):
        raise TypeError(f"gpudiag: option ops must be True or False, not {type(ops).__name__}")
    if _torch is not None:
        _profiler.notice_open()
    started = _session.start(options)
    if started:
        _install_hooks(_operators.wanted() if ops is None else ops)
    return started


def stop() -> None:
    """Ends the session that this package started, waits up to two seconds for its last iterations,
    and takes the hooks out. An injected session runs on, without hooks. start() starts again."""
    global _hooked
    _session.stop()
    if _hooked:
        _hooked = False
        _hooks.remove()
        _wrap.forget_imports()


def step(number: Optional[int] = None) -> None:
    """An iteration of the training loop ends here; `number` is the job's own for it. Where this is
    called, optimizer steps count no more. Call it at one place of one thread."""
    _session.step(number)


def active() -> bool:
    """Whether a session records in this process."""
    return bool(_native.active())


def last() -> Optional[Dict[str, Any]]:
    """The latest iteration that closed, as a dict, or None: times in nanoseconds, ``idle`` by cause."""
    return _native.last()


class Report(dict):
    """``gpudiag.report/1`` of this process, as docs/output.md describes it."""

    def to_pandas(self) -> Any:
        """The iterations as a pandas.DataFrame, one a row, causes of idle time as ``idle.<cause>_ns``.

        :raises ImportError: where pandas is not installed
        """
        import pandas
        rows = []
        for rank in self.get("ranks", []):
            for device in rank["devices"]:
                for iteration in device["iterations"]:
                    row = {"rank": rank["rank"], "device": device["device"]}
                    for key, value in iteration.items():
                        if key in ("idle", "replay_cost", "communication", "copy"):
                            row.update({f"{key}.{name}": part for name, part in value.items()})
                        elif not isinstance(value, (list, dict)):
                            row[key] = value
                    rows.append(row)
        return pandas.DataFrame(rows)


def report(pandas: bool = False) -> Any:
    """The report of this process so far, over its newest iterations (some 4,000), as a dict: sums,
    findings with evidence and advice, verdict. Empty where there has been no session. With
    ``pandas=True`` its iterations as a DataFrame."""
    import json
    text = _native.report()
    made = Report(json.loads(text)) if text else Report()
    return made.to_pandas() if pandas else made


class profile:
    """A session for a block, in the manner of torch.profiler::

        with gpudiag.torch.profile() as p:
            for batch in loader:
                train(batch)
                p.step()
        print(p.report()["verdict"])

    Options are those of start(); `on_iteration` is called for each iteration. A session that was there
    before runs on behind the block, whose end then waits up to two seconds for its last iterations.

    :raises TypeError: for an option that there is not, or of the wrong type
    """

    def __init__(self, on_iteration: Optional[Callable[[Dict[str, Any]], None]] = None, **options: Any) -> None:
        if on_iteration is not None and not callable(on_iteration):
            raise TypeError(f"gpudiag.profile: on_iteration must be a function, not {type(on_iteration).__name__}")
        _session.checked_options(options)
        self._options, self._function, self._ours = options, on_iteration, False

    def __enter__(self) -> "profile":
        self._ours = not _state.on
        start(**self._options)
        if self._function is not None:
            _session.on_iteration(self._function)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._ours:
            stop()
        else:
            _session.wait_until_closed()
        if self._function is not None:
            _session.callbacks.remove(self._function)

    def step(self, number: Optional[int] = None) -> None:
        step(number)

    def report(self, pandas: bool = False) -> Any:
        return report(pandas)


def info() -> Dict[str, Any]:
    """What is there and what is missing."""
    return {"version": _native.version, "library": _native.path, "library_problem": _native.problem,
            "torch": getattr(_torch, "__version__", None), "active": active(), "hooks": _hooked,
            "operators": _operators.state(),
            "callback_failures": _session.callbacks.failures}


def _when_cuda_starts() -> None:
    """The session starts when this process first uses CUDA. Hooks go in at once, since iterators may
    be made before; in a child of multiprocessing, which mostly is a loader's worker, only then too."""
    cuda = getattr(_torch, "cuda", None)
    if cuda is None:
        return
    if multiprocessing.parent_process() is None:
        _install_hooks(_operators.wanted())
    if cuda.is_initialized():
        start()
        return
    try:
        cuda._lazy_call(start)
    except Exception:  # a torch without it: at once, then
        start()


if _torch is None:
    _native.say("torch: PyTorch is not installed here; marks and ranges work, hooks do not")
    start()
elif getattr(_torch.version, "cuda", None) is None and getattr(_torch.version, "hip", None) is None:
    _native.say("torch: no GPU activity: this PyTorch is built without CUDA")
else:
    _when_cuda_starts()
