"""Hypothesis strategies: random valid rules, whatever their shape."""

from __future__ import annotations

from hypothesis import reject
from hypothesis import strategies as st

from suffice.errors import BadInput
from suffice.rule import Rule

__all__ = ["rules", "vote_laws"]


@st.composite
def rules(draw: st.DrawFn, max_n: int = 8, min_n: int = 1) -> Rule:
    """A valid rule: looks left out, boundaries that rise, stay or fall, stops of any shape."""
    n_max = draw(st.integers(min_n, max_n))
    declare, height = [1], 1
    for n in range(1, n_max + 1):
        kind = draw(st.sampled_from(["never", "level", "rise", "majority"]))
        if kind == "never":
            declare.append(n + 1)
            continue
        if kind == "majority":
            height = draw(st.integers(n // 2 + 1, n))
        elif kind == "rise":
            height += draw(st.integers(1, 2))
        declare.append(min(height, n + 1))
    share = draw(st.sampled_from([0.0, 0.5, 1.0]))  # how high a stop may be
    stop = [draw(st.integers(0, int(share * top))) for top in declare]
    try:
        return Rule(declare, stop, "random", {"n_max": n_max})
    except BadInput:
        reject()


@st.composite
def vote_laws(draw: st.DrawFn, classes: int = 3) -> list[float]:
    """Masses of some classes; what is short of 1 is the mass of invalid votes."""
    weights = draw(st.lists(st.integers(0, 8), min_size=classes + 1, max_size=classes + 1))
    if not sum(weights):
        reject()
    return [weight / sum(weights) for weight in weights[:-1]]
