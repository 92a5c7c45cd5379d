# SPDX-License-Identifier: Apache-2.0
"""Where every nanosecond of a training iteration goes, and why the GPU was idle.

In a PyTorch script ``import gpudiag.torch`` is all it takes; see there. This module alone starts
nothing.
"""

from ._native import version as _version

__version__ = _version
__all__ = ["__version__"]
