"""The bibliography's style `linked`: plain, and each title leads to its paper, by DOI or by the entry's stable address."""

from __future__ import annotations

from typing import Any

from pybtex.plugin import find_plugin, register_plugin
from pybtex.style.formatting.plain import Style as Plain
from pybtex.style.template import href

from evolvingdp.book.citing import address


class Linked(Plain):  # type: ignore[misc]
    """Plain, with titles that are links."""

    def format_title(self, e: Any, which_field: str, as_sentence: bool = True) -> Any:
        return href(address(e.fields))[super().format_title(e, which_field, as_sentence)]

    def format_btitle(self, e: Any, which_field: str, as_sentence: bool = True) -> Any:
        title = super().format_btitle(e, which_field, as_sentence)
        return href(address(e.fields))[title] if which_field == "title" else title  # proceedings are no paper


def register() -> None:
    register_plugin("pybtex.style.formatting", "linked", Linked)
    # looked up for every citation, in the lists of all installed packages unless it is registered
    register_plugin("pybtex.backends", "plaintext", find_plugin("pybtex.backends", "plaintext"), force=True)
