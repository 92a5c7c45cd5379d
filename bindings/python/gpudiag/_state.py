# SPDX-License-Identifier: Apache-2.0
"""Whether the hooks feed a session now. Hooks read ``_state.on`` first and do nothing where it is
False: before the start, after the stop, in a forked child."""

from __future__ import annotations

import os

on = False


def _in_child() -> None:
    # The library is inert in the child of a process with a session (a DataLoader worker); without
    # one the child is a process like any other, and may become a rank.
    global on
    from . import _native
    if on and not _native.active():
        on = False


os.register_at_fork(after_in_child=_in_child)
