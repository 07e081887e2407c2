"""What stands beside the book's notebooks, `evolvingdp.notebooks.<paper>.<name>`: imported from the checkout."""

import os
from pathlib import Path

__path__ = [os.environ.get("EVOLVINGDP_NOTEBOOKS") or str(Path(__file__).parents[3] / "notebooks")]
if not Path(__path__[0]).is_dir():
    raise ImportError("the notebooks stand in the book's repository, and in no installed package: clone it, run make there")
