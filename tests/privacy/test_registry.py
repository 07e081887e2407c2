"""The registry knows whatever takes a generator."""

from __future__ import annotations

from generators import MECHANISMS

from evolvingdp.audit.registry import listing
from evolvingdp.continual_mean.per_step import PerStepLaplace


def test_whatever_takes_a_generator_has_an_entry_or_a_reason():
    assert len(listing.drawing()) > 80
    assert listing.unknown(covered for one in MECHANISMS.values() for covered in one.covers) == []
    assert listing.idle() == []


def test_what_has_no_entry_is_named():
    rest = (covered for name, one in MECHANISMS.items() if name != "per_step" for covered in one.covers)
    assert f"{PerStepLaplace.__module__}.PerStepLaplace.release" in listing.unknown(rest)
