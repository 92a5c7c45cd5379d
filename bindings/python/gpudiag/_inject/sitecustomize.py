# SPDX-License-Identifier: Apache-2.0
"""Put first in PYTHONPATH by `gpudiag run`: every Python of the job runs this at its start.

It registers one import hook and is done: only where `torch` is imported does anything happen, and
then hooks go in without starting anything; the session starts when the process uses CUDA. Takes
itself out of the way of the user's own sitecustomize.
"""

import os
import sys


class _TorchFinder:
    """Waits for the import of torch. Nothing of importlib's is imported before that."""

    def __init__(self, package):
        self._package = package  # the folder that holds `gpudiag`

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec
        try:
            spec = find_spec("torch")
        except (ImportError, ValueError):
            return None
        if spec is None or spec.origin is None or not hasattr(spec.loader, "exec_module"):
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            try:
                execute(module)
            except BaseException as error:
                # The job's traceback is as without us (from Python 3.11 on).
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            self._torch_is_here()

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            return None
        return spec

    def _torch_is_here(self):
        try:
            if "gpudiag" not in sys.modules:
                sys.path.insert(0, self._package)
                try:
                    import gpudiag
                finally:
                    sys.path.remove(self._package)
            import gpudiag.torch
        except Exception as error:
            try:
                os.write(2, f"gpudiag torch: no hooks: {error!r}\n".encode())
            except OSError:
                pass


def _chain(here):
    """Runs the sitecustomize that would have been found without ours."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    sys.path[:] = [entry for entry in sys.path if entry != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("GPUDIAG_ENABLED") not in ("off", "0", "false"):
        sys.meta_path.insert(0, _TorchFinder(os.path.dirname(os.path.dirname(here))))
    _chain(here)


_begin()
