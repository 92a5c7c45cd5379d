# SPDX-License-Identifier: Apache-2.0
"""The C interface of libgpudiag.so by ctypes: the one module that knows it.

No compiled extension, so that one package serves every Python and can be used where it lies.
Functions of a few nanoseconds are called with the GIL held (giving it up and asking for it again
costs more, and lets other threads in between); those that wait are called without.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Optional

version = "0.1.0"

CAUSES = ("data_loading", "communication_wait", "launch_overhead", "sync", "allocation", "checkpoint", "host",
          "dependency", "unknown")
CAUSE_CODES = {name: code for code, name in enumerate(CAUSES, 1)}
OPENED_BY = ("step", "profiler_step", "pattern", "optimizer", "launch_pattern", "window")
PHASES = ("train", "evaluation", "warm_up", "window")

OK, RUNNING, OFF, FAILED, FORKED = 0, 1, -1, -2, -3
MARK_STEP, MARK_OPTIMIZER = 0, 3
TRAIN, EVALUATION = 0, 1
NO_NUMBER = 2**64 - 1


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("enabled", ctypes.c_char_p), ("log", ctypes.c_char_p),
                ("dir", ctypes.c_char_p), ("record", ctypes.c_char_p), ("callbacks", ctypes.c_char_p),
                ("nvtx", ctypes.c_char_p), ("ranges", ctypes.c_char_p), ("iteration", ctypes.c_char_p),
                ("cupti", ctypes.c_char_p), ("budget", ctypes.c_double), ("rank", ctypes.c_int32),
                ("watch", ctypes.c_char_p)]


class Iteration(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("index", ctypes.c_uint64), ("rank", ctypes.c_int32),
                ("device", ctypes.c_uint32), ("valid", ctypes.c_int32), ("partial", ctypes.c_int32),
                ("wall_ns", ctypes.c_int64), ("compute_ns", ctypes.c_int64),
                ("communication_ns", ctypes.c_int64), ("copy_ns", ctypes.c_int64), ("idle_ns", ctypes.c_int64),
                ("idle_by_cause_ns", ctypes.c_int64 * len(CAUSES)), ("own_ns", ctypes.c_int64),
                ("opened_by", ctypes.c_int32), ("phase", ctypes.c_int32)]


def library_paths() -> list[str]:
    """Where libgpudiag.so may lie, best first: named by the user, in the package, beside it."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(here, "lib"), os.path.join(here, "lib64"),
               # <lib>/gpudiag/python/gpudiag: of an installation and of the build folder
               os.path.abspath(os.path.join(here, "..", "..", ".."))]
    named = os.environ.get("GPUDIAG_LIBRARY")
    return ([named] if named else []) + [os.path.join(folder, "libgpudiag.so.0") for folder in folders]


def _load() -> tuple[Optional[str], Optional[str]]:
    problems = []
    for path in library_paths():
        if not os.path.exists(path):
            problems.append(f"no {path}")
            continue
        try:
            ctypes.CDLL(path)
            return path, None
        except OSError as error:
            problems.append(str(error))
    return None, "; ".join(problems)


def _declare(library: Any) -> None:
    c = ctypes
    for name, result, arguments in (
            ("options_init", None, [c.POINTER(Options), c.c_size_t]),
            ("start", c.c_int, [c.POINTER(Options)]),
            ("stop", None, []),
            ("active", c.c_int, []),
            ("mark", None, [c.c_int, c.c_int, c.c_uint64]),
            ("range_push", None, [c.c_char_p, c.c_int]),
            ("range_pop", None, []),
            ("annotate", None, [c.c_char_p, c.c_int, c.c_int64, c.c_int64]),
            ("now_ns", c.c_int64, []),
            ("last", c.c_int, [c.POINTER(Iteration)]),
            ("take_iterations", c.c_size_t, [c.POINTER(Iteration), c.c_size_t, c.c_int]),
            ("report", c.c_size_t, [c.c_char_p, c.c_size_t]),
            ("stand_aside", None, [c.c_char_p]),
            ("resume", None, []),
    ):
        function = getattr(library, "gpudiag_" + name)
        function.restype, function.argtypes = result, arguments


path, problem = _load()
if path is not None:
    # Two views of one library: calls that return at once, and calls that wait.
    _quick = ctypes.PyDLL(path)
    _slow = ctypes.CDLL(path)
    try:
        _declare(_quick)
        _declare(_slow)
    except AttributeError as error:
        path, problem = None, f"{path} is of another version: {error}"

available = path is not None

Number = ctypes.c_uint64  # of an iteration, for mark()


def _undeclared(name: str) -> Any:
    """A function that takes its arguments as they come, in a third of the time: Python's integers as C's int,
    bytes as a pointer, objects of ctypes as what they are."""
    function = _quick[name]  # another object than _quick.name
    function.restype = None
    return function


if available:
    range_push = _undeclared("gpudiag_range_push")  # bytes, int
    range_pop = _quick.gpudiag_range_pop
    annotate = _quick.gpudiag_annotate
    mark = _undeclared("gpudiag_mark")              # int, int, Number
    now_ns = _quick.gpudiag_now_ns
    active = _quick.gpudiag_active
    _last = _quick.gpudiag_last
    stop = _slow.gpudiag_stop
    take_iterations = _slow.gpudiag_take_iterations
    _report = _slow.gpudiag_report
    stand_aside = _slow.gpudiag_stand_aside
    resume = _slow.gpudiag_resume
else:
    def _nothing(*_: Any) -> int:
        return 0

    range_push = range_pop = annotate = mark = now_ns = active = _last = stop = take_iterations = _report = _nothing
    stand_aside = resume = _nothing

def range_pointers() -> Optional[tuple]:
    """gpudiag_annotate_from() and gpudiag_now_ns(), for the library of operators."""
    if not available:
        return None
    return tuple(ctypes.cast(getattr(_quick, name), ctypes.c_void_p)
                 for name in ("gpudiag_annotate_from", "gpudiag_now_ns"))


_told: set = set()


def say(text: str, once: bool = True) -> None:
    """One line of ours on stderr; never an exception, whatever has become of stderr."""
    if once and text in _told:
        return
    _told.add(text)
    try:
        os.write(2, f"gpudiag {text}\n".encode(errors="replace"))
    except OSError:
        pass


def start(options: Optional[dict[str, Any]] = None) -> int:
    """gpudiag_start(); options by their names in gpudiag_options."""
    if not available:
        say(f"cannot start: libgpudiag.so.0 is missing ({problem})")
        return FAILED
    struct = Options()
    _quick.gpudiag_options_init(ctypes.byref(struct), ctypes.sizeof(struct))
    for name, value in (options or {}).items():
        setattr(struct, name, value.encode() if isinstance(value, str) else value)
    return _slow.gpudiag_start(ctypes.byref(struct))


def as_dict(iteration: Iteration) -> dict[str, Any]:
    """An iteration as Python has it: the field names of gpudiag.iteration/1."""
    def named(names: tuple, number: int) -> str:
        return names[number] if 0 <= number < len(names) else str(number)

    return {"index": iteration.index, "rank": iteration.rank, "device": iteration.device,
            "valid": bool(iteration.valid), "partial": bool(iteration.partial),
            "opened_by": named(OPENED_BY, iteration.opened_by), "phase": named(PHASES, iteration.phase),
            "wall_ns": iteration.wall_ns, "compute_ns": iteration.compute_ns,
            "communication_ns": iteration.communication_ns, "copy_ns": iteration.copy_ns,
            "idle_ns": iteration.idle_ns,
            "idle": dict(zip(CAUSES, iteration.idle_by_cause_ns)), "own_ns": iteration.own_ns}


def last() -> Optional[dict[str, Any]]:
    iteration = Iteration()
    iteration.size = ctypes.sizeof(iteration)
    return as_dict(iteration) if _last(ctypes.byref(iteration)) else None


def report() -> Optional[str]:
    """gpudiag_report(): JSON, or None where there is nothing to report."""
    size = _report(None, 0)
    for _ in range(8):  # it may grow meanwhile
        if size == 0:
            return None
        text = ctypes.create_string_buffer(size + 4096)
        size = _report(text, len(text))
        if 0 < size <= len(text):
            return text.value.decode("utf-8", "replace")
    return None


if sys.maxsize < 2**32:  # the library is built for 64 bits
    available = False
