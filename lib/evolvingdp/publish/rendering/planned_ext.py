"""The planner's own output on a page: the command and what it prints, computed when the book is built.

```{plan} mean --users 500_000 --periods 365
```
"""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from evolvingdp.publish.planned import plan


class Plan(SphinxDirective):
    """What `evolvingdp plan` prints; a question that it refuses is an error."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the library is none of the page's files
        typed = " ".join(self.arguments[0].split())
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                plan.main(shlex.split(typed), prog_name="evolvingdp plan", standalone_mode=False)
        except click.ClickException as error:
            raise self.error(f"plan {typed}: {error.format_message()}") from error
        text = f"$ evolvingdp plan {typed}\n\n{printed.getvalue().rstrip()}"
        return [nodes.literal_block(text, text, language="text", classes=["planned"])]
