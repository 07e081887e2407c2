"""What notebooks import of other packages, under settings that are not the user's.

Kernels are forked from a process that imports this.
"""

import contextlib
import gc
import importlib
import sys
import tempfile
from pathlib import Path

from evolvingdp.publish.running.environment import environment, own_settings

PATH = list(sys.path)  # where modules are looked for
_BACKEND = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # as a kernel sets it before matplotlib is imported
_MODULES = (
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib_inline.backend_inline",
    "pandas",
    "pydantic",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
)

with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty), environment(own_settings(Path(empty)) | _BACKEND):
    for module in _MODULES:
        importlib.import_module(module)
gc.freeze()  # what is here stays: collections pass over it, and forks share its pages
