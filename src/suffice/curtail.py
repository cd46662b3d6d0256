"""End a pool as soon as its verdict is forced, and change no verdict."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.rule import Rule

__all__ = ["curtail", "forced"]

Counts = NDArray[np.int64]


def curtail(rule: Rule, every: int = 1) -> Rule:
    """The rule that ends each pool once every continuation gives the same verdict (Prop. 2).

    On every vote sequence, unseen labels and invalid votes among them, the verdict is that of
    `rule`; no earlier end would keep it. With ``every=B`` the pool still ends only at each B-th
    vote and at the cap; `rule` may not look anywhere else.

    >>> full = Rule([1, 2, 3, 4, 3], [0, 0, 0, 0, 3], "three of four")
    >>> short = curtail(full)
    >>> short.declare.tolist(), short.stop.tolist()
    ([1, 2, 3, 3, 3], [0, 0, 1, 2, 3])
    """
    declare, stop = forced(rule.declare, rule.stop)
    if every > 1:
        n = np.arange(declare.size)
        blind = (n % every != 0) & (n < rule.n_max)
        if ((rule.declare <= n) & blind).any() or ((rule.stop > 0) & blind).any():
            raise BadInput(f"every = {every}: the rule looks at other votes too; leave every out")
        declare, stop = np.where(blind, n + 1, declare), np.where(blind, 0, stop)
    return Rule(declare, stop, rule.name, rule.parameters)


def forced(declare: Counts, stop: Counts) -> tuple[Counts, Counts]:
    """The curtailed boundaries, shapes ``(n_max + 1,)``, of boundaries that make a valid rule.

    Votes that all go to a class are the best that can happen to it, votes that all go elsewhere
    the worst. So both forced verdicts are a count at each n, found backwards from the cap. That
    a class's own count decides even among rivals follows from what a valid rule is: no rival can
    be declared on the way to a look at which this class is sure to cross.
    """
    last = int(declare[-1])
    sure, hope = [last], [last]
    for at, out in zip(declare[-2::-1].tolist(), stop[-2::-1].tolist(), strict=True):
        sure.append(max(out, min(at, sure[-1])))
        hope.append(max(out, min(at, hope[-1] - 1)))
    return np.array(sure[::-1], dtype=np.int64), np.array(hope[::-1], dtype=np.int64)
