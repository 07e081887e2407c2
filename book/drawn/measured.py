"""A notebook's figure on a chapter's page, unnumbered: the notebook's own has the number.

```{measured-figure} evolving/thresh ev-thresh-time
```
"""

from __future__ import annotations

import json
from pathlib import Path

from evolvingdp.book.checkout import RESULTS, Project


def figure(root: Path, asked: str, *_: object) -> str:
    """The figure as MyST; raises OSError or ValueError where the notebook has none of this name."""
    notebook, name = asked.split()
    told = json.loads((Project(root).results / notebook / f"{name}.json").read_text())
    image = f"/{RESULTS}{notebook}/{name}.svg"
    return (
        f"```{{image}} {image}\n:alt: {json.dumps(told['alt'], ensure_ascii=False)}\n:width: 100%\n:class: measured\n```\n\n"
        f"{told['caption']} Data and code: {{numref}}`{name}`."
    )
