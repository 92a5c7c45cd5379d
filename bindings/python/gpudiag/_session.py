# SPDX-License-Identifier: Apache-2.0
"""Start and stop, and what a program may say and ask meanwhile. Needs no torch."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from . import _native, _state
from ._loop import loop

_TEXT = ("enabled", "log", "dir", "record", "callbacks", "nvtx", "ranges", "iteration", "cupti", "watch")
_SWITCHES = ("enabled", "record", "nvtx", "callbacks", "watch")


def checked_options(options: Dict[str, Any]) -> Dict[str, Any]:
    """The options as the library takes them; TypeError for what cannot be one."""
    checked: Dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in _SWITCHES and isinstance(value, bool):
            checked[name] = "on" if value else "off"
        elif name == "log" and isinstance(value, bool):
            checked[name] = "on" if value else "off"
        elif name == "ranges" and isinstance(value, dict):
            checked[name] = ";".join(f"{pattern}={cause}" for pattern, cause in value.items())
        elif name in _TEXT:
            if not isinstance(value, str) and not hasattr(value, "__fspath__"):
                raise TypeError(f"gpudiag: option {name} must be text, not {type(value).__name__}")
            checked[name] = value if isinstance(value, str) else str(value.__fspath__())
        elif name == "budget":
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"gpudiag: option budget must be a number, not {type(value).__name__}")
            checked[name] = float(value)
        elif name == "rank":
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"gpudiag: option rank must be a whole number, not {type(value).__name__}")
            checked[name] = value
        else:
            known = ", ".join(_TEXT + ("budget", "rank"))
            raise TypeError(f"gpudiag: there is no option {name}; there are {known}")
    return checked


class Callbacks:
    """Hands iterations to functions of the user's, on a thread of Python's own.

    gpudiag's thread never waits for the GIL: it leaves iterations in a queue that this thread takes
    them from.
    """

    def __init__(self) -> None:
        self._functions: List[Callable[[Dict[str, Any]], None]] = []
        self._thread: Optional[threading.Thread] = None
        self._stopping = False
        self._control = threading.Lock()
        self.failures = 0

    def add(self, function: Callable[[Dict[str, Any]], None]) -> None:
        with self._control:
            self._functions = self._functions + [function]
            if self._thread is None and _native.available:
                self._stopping = False
                _native.take_iterations(None, 0, 0)
                self._thread = threading.Thread(target=self._run, name="gpudiag-callbacks", daemon=True)
                self._thread.start()

    def remove(self, function: Callable[[Dict[str, Any]], None]) -> None:
        with self._control:
            self._functions = [known for known in self._functions if known is not function]

    def _run(self) -> None:
        batch = (_native.Iteration * 64)()
        while True:
            batch[0].size = ctypes.sizeof(_native.Iteration)
            count = _native.take_iterations(batch, len(batch), 1000)
            for one in batch[:count]:
                self._hand_over(_native.as_dict(one))
            if count == 0 and self._stopping:
                return

    def _hand_over(self, iteration: Dict[str, Any]) -> None:
        for function in self._functions:
            try:
                function(iteration)
            except BaseException as error:  # sys.exit() as well: it would end the thread, and all other functions' calls
                self.failures += 1
                name = getattr(function, "__qualname__", repr(function))
                _native.say(f"on_iteration: {name} failed and will be called on: {error!r}")

    def close(self, patience: float = 2.0) -> None:
        """Hands over what has closed and ends the thread."""
        with self._control:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            self._stopping = True
        if thread is threading.current_thread():
            return
        _native.take_iterations(None, 0, 0)  # wakes it; what is queued stays
        thread.join(patience)
        _native.take_iterations(None, 0, -1)

    def after_fork(self) -> None:
        self.__init__()  # type: ignore[misc]


callbacks = Callbacks()
_started_here = False
_exit_registered = False


def start(options: Dict[str, Any]) -> bool:
    """Whether a session records now."""
    global _started_here, _exit_registered
    status = _native.start(checked_options(options))
    if status == _native.RUNNING and options:
        _native.say(f"torch: a session is running already, its options stand; not used: {', '.join(sorted(options))}")
    _started_here = _started_here or status == _native.OK
    loop.reset() if status == _native.OK else None
    _state.on = status >= 0
    if not _exit_registered:
        _exit_registered = True
        atexit.register(_at_exit)
    return _state.on


def stop() -> None:
    global _started_here
    _state.on = False
    if _started_here:
        _native.stop()
        _started_here = False
    callbacks.close()


def wait_until_closed(patience: float = 2.0) -> None:
    """Until no further iteration has closed for two rounds of delivery."""
    end = time.monotonic() + patience
    before, since = None, time.monotonic()
    while _native.active() and time.monotonic() < end:
        iteration = _native.last()
        if iteration != before:
            before, since = iteration, time.monotonic()
        elif time.monotonic() - since > 0.45:
            return
        time.sleep(0.05)


def _at_exit() -> None:
    """Python is still whole: the last iterations are handed over, then nothing of ours runs in it."""
    _state.on = False
    if callbacks._thread is None:
        return  # the library ends the session by itself, after Python
    if _started_here:
        _native.stop()
    callbacks.close()


def step(number: Optional[int] = None) -> None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise TypeError(f"gpudiag.step: the number must be a whole number, not {type(number).__name__}")
    if number is not None and number < 0:
        raise ValueError(f"gpudiag.step: the number must not be negative, and is {number}")
    if _state.on:
        loop.step(number)


class range(contextlib.ContextDecorator):
    """A stretch of host time with a name and perhaps a cause: for ``with`` and as a decorator."""

    __slots__ = ("name", "cause", "_label", "_code", "_open")

    def __init__(self, name: str, cause: Optional[str] = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"gpudiag.range: the name must be text, not {type(name).__name__}")
        if cause is not None and cause not in _native.CAUSE_CODES:
            raise ValueError(f"gpudiag.range: there is no cause {cause!r}; there are {', '.join(_native.CAUSES)}")
        self.name, self.cause = name, cause
        self._label = name.encode("utf-8", "replace")
        self._code = _native.CAUSE_CODES[cause] if cause else 0
        self._open: List[bool] = []

    def _recreate_cm(self) -> "range":
        return type(self)(self.name, self.cause)

    def __enter__(self) -> "range":
        self._open.append(_state.on)
        if _state.on:
            _native.range_push(self._label, self._code)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._open.pop():
            _native.range_pop()

    def __call__(self, function: Callable) -> Callable:
        import inspect
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            # Such a function is left and entered again in between, where ranges of a thread do not nest.
            raise TypeError("gpudiag.range: cannot be put on a coroutine or generator function")
        label, code = self._label, self._code

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not _state.on:
                return function(*args, **kwargs)
            _native.range_push(label, code)
            try:
                return function(*args, **kwargs)
            finally:
                _native.range_pop()

        return wrapper


def on_iteration(function: Callable[[Dict[str, Any]], None]) -> Callable[[Dict[str, Any]], None]:
    if not callable(function):
        raise TypeError(f"gpudiag.on_iteration: a function is needed, not {type(function).__name__}")
    callbacks.add(function)
    return function


import os as _os  # noqa: E402

_os.register_at_fork(after_in_child=callbacks.after_fork)
