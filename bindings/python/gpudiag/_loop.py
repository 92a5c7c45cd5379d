# SPDX-License-Identifier: Apache-2.0
"""Where an iteration of the training loop ends.

- An optimizer step ends one. Of several optimizers the *leader* counts: the first that was seen to
  step. It leads until it is gone, or until another has stepped ``_PATIENCE`` times since the leader
  last did; that one leads then.
- ``step()`` ends one of a loop of its own, which libgpudiag trusts more.
- Evaluation (batches fetched with gradients switched off, or while the model is in ``eval()``) is
  cut off from training: an iteration of phase ``evaluation`` ends when its next batch is asked for,
  at the end of its loader, at ``model.train()`` and before the next training batch.

Marks are set by one thread, that of the optimizer.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, List, Optional

from . import _native, _state

# A GAN's critic may step a few times for each step of the generator, which leads if it came first.
_PATIENCE = 16


def _reference(thing: Any) -> Any:
    try:
        return weakref.ref(thing)
    except TypeError:  # a class with __slots__
        return lambda: thing


class Loop:
    """The marks of one training loop."""

    def __init__(self) -> None:
        # Set by hooks, which a session may find in place.
        self.gradients_on = lambda: True
        self.at_mark: Any = None      # called where an iteration of training ends
        self.reset()

    def reset(self) -> None:
        """A session begins."""
        self._leader: Any = lambda: None  # a weak reference
        self._others: dict[int, int] = {}
        self._thread: Optional[int] = None
        self._explicit = False
        self._evaluating = False      # an evaluation is open
        self._batches = 0             # of it, asked for since the last mark
        # Of the next training iteration that an optimizer, or step(), ends. Given to the library, since
        # a job without marks, as ours is before the first, has windows that it counts too.
        self.number = 0
        self.step_number = 0
        self.optimizer_steps = 0
        self.held = False             # inside a step that holds several of an optimizer
        self._eval_roots: List[Any] = []  # weak references; nearly always none or one
        self._frozen: weakref.WeakSet = weakref.WeakSet()

    # --- what the user says -----------------------------------------------------------------------

    def step(self, number: Optional[int]) -> None:
        self._explicit = True
        self._thread = threading.get_ident()
        evaluation = self._evaluating or not self.gradients_on()
        self._batches = 0
        if number is not None:
            self.step_number = number
        _native.mark(_native.MARK_STEP, _native.EVALUATION if evaluation else _native.TRAIN,
                     _native.Number(self.step_number))
        if not evaluation:
            self.step_number += 1
        if self.at_mark is not None:
            self.at_mark()

    # --- what the hooks see -----------------------------------------------------------------------

    def optimizer_stepped(self, optimizer: Any) -> None:
        self.optimizer_steps += 1
        if self.held:
            return
        if self._eval_roots:
            # Trained while in eval(): a frozen part, which says nothing about the phase.
            self._frozen.update(root for root in self._live_roots() if not root.training)
            self._eval_roots.clear()
        self._evaluating = False
        self._batches = 0
        # Once an iteration, with cold caches: a call less is felt by the shortest of them.
        if (self._leader() is not optimizer or self._others) and not self._leads(optimizer):
            return
        self._thread = threading.get_ident()
        _native.mark(_native.MARK_OPTIMIZER, _native.TRAIN, _native.Number(self.number))
        self.number += 1
        if self.at_mark is not None and not self._explicit:
            self.at_mark()

    def _leads(self, optimizer: Any) -> bool:
        leader = self._leader()
        if leader is optimizer:
            self._others.clear()
            return True
        if leader is not None:
            key = id(optimizer)
            count = self._others[key] = self._others.get(key, 0) + 1
            if count < _PATIENCE:
                return False
        self._leader = _reference(optimizer)
        self._others.clear()
        return True

    def module_mode(self, module: Any, training: bool) -> None:
        """``module.train(training)``, called by the user."""
        if training:
            self._eval_roots = [root for root in self._eval_roots if root() is not module]
            if self._evaluating and not self._in_eval() and self.gradients_on():
                self._end_evaluation()
        elif module not in self._frozen:
            if not any(known is module for known in self._live_roots()):
                self._eval_roots.append(weakref.ref(module))

    def _live_roots(self) -> List[Any]:
        return [module for module in (root() for root in self._eval_roots) if module is not None]

    def _in_eval(self) -> bool:
        if not self._eval_roots:
            return False
        # Some trainers go back to training by setting the attribute.
        return any(not module.training for module in self._live_roots())

    def batch_asked(self) -> None:
        """A loader's next batch is about to be fetched."""
        if self._thread is not None and self._thread != threading.get_ident():
            return
        if not self.gradients_on() or self._in_eval():
            if self._batches > 0 and self._evaluating:
                self._mark_evaluation()
            self._evaluating = True
            self._batches += 1
        elif self._evaluating:
            self._end_evaluation()

    def loader_ended(self) -> None:
        """The batch that was asked for is none."""
        if self._evaluating and (self._thread is None or self._thread == threading.get_ident()):
            self._batches -= 1
            self._end_evaluation()

    def _end_evaluation(self) -> None:
        if self._batches > 0:
            self._mark_evaluation()
        self._evaluating = False

    def _mark_evaluation(self) -> None:
        self._batches = 0
        if self._explicit:
            _native.mark(_native.MARK_STEP, _native.EVALUATION, _native.Number(self.step_number))
        else:
            _native.mark(_native.MARK_OPTIMIZER, _native.EVALUATION, _native.Number(self.number))


loop = Loop()


def on() -> bool:
    return _state.on
