"""The exact law of a whole pool: what a rule does to a vote law pi over C classes.

P(class c declared) is its own OC(pi_c) less the pools that a rival ends first, by inclusion and
exclusion. The pool is open while no class is declared and some class is not out; given the counts
at n, whether two classes are out is the share of arrangements that put both out, and a third and
further class is taken as independent of them. That overstates "all out", as the votes of different
classes are negatively associated; a bound from below gives the stated error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its `special` is loaded at first use: it takes longer to import than numpy
from numpy.typing import ArrayLike, NDArray

from suffice.arrangements import NEGLIGIBLE, Arrangements, arrangements
from suffice.errors import BadInput
from suffice.pool_joint import affordable, joint_law
from suffice.rule import Rule

__all__ = ["PoolLaw", "pool_law", "pool_laws"]

Floats = NDArray[np.float64]
TINY = 1e-7  # a class with less chance of not being out is taken as out; the error includes it
CHUNK = 1024  # laws worked on at once, so that the tables stay in the cache
LARGEST = 512  # beyond, the tables over two counts take gigabytes
ROUNDING = 1e-12
SUM_SLACK = 1e-9  # how far above 1 a law's sum may be through rounding


@dataclass(frozen=True, eq=False)
class PoolLaw:
    """How pools of one or many vote laws end; the leading axis (M,) is missing for one law."""

    declared: Floats
    """P(class c declared), shape (M, C)."""
    undecided: Floats
    """P(no class declared), shape (M,)."""
    samples: Floats
    """The law of N: P(N = n), shape (M, n_max + 1)."""
    expected_samples: Floats
    """E[N], shape (M,)."""
    error: Floats
    """Bound on the absolute error of E[N], shape (M,); 0 when exact."""
    declared_error: Floats
    """Bound on the absolute error of each probability in `declared`, shape (M,)."""

    @property
    def method(self) -> str:
        """'exact', or 'bounded' when an error is above rounding."""
        worst = max(np.max(self.error), np.max(self.declared_error))
        return "exact" if worst <= ROUNDING else "bounded"


def pool_law(rule: Rule, pi: ArrayLike) -> PoolLaw:
    """The law of a pool whose votes follow pi, shape (C,); exact where that is affordable.

    What pi lacks to 1 is the mass of votes for no class here: invalid, or of an unnamed tail.

    >>> curtailed = Rule([1, 2, 2, 2], [0, 0, 1, 2], "two of three")
    >>> result = pool_law(curtailed, [0.5, 0.25])
    >>> float(result.expected_samples), result.declared.round(9).tolist(), result.method
    (2.625, [0.5, 0.15625], 'exact')
    """
    law = vote_laws(pi, 1)
    whole = _pool_laws(rule, law[None], 0.0)
    if whole.method != "exact" and affordable(rule, law):
        declared, samples = joint_law(rule, law)
        return _assemble(declared, samples, np.zeros(()), np.zeros(()))
    return PoolLaw(**{name: value[0] for name, value in vars(whole).items()})


def pool_laws(rule: Rule, pis: ArrayLike) -> PoolLaw:
    """`pool_law` for each row of pis, shape (M, C), fast and with a stated error.

    >>> pool_laws(Rule([1, 2, 2], [0, 0, 1], "two in a row"), [[1.0], [0.5]]).declared.tolist()
    [[1.0], [0.25]]
    """
    return _pool_laws(rule, vote_laws(pis, 2), TINY)


def vote_laws(pi: ArrayLike, dimensions: int) -> Floats:
    """One vote law, shape (C,), or rows of them, shape (M, C), once each is known to be one."""
    what = "pi" if dimensions == 1 else "pis"
    try:
        laws = np.asarray(pi, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{what} must be numbers, one for each class") from None
    if laws.ndim != dimensions or laws.size == 0:
        shape = "one row" if dimensions == 1 else "rows"
        raise BadInput(f"{what} has shape {laws.shape}; give {shape} of vote masses, one a class")
    wrong = ~(laws >= 0)
    if wrong.any():
        raise BadInput(f"{what} holds {laws[wrong].flat[0]:g}; a vote mass is 0 or more")
    total = laws.sum(axis=-1).max()
    if total > 1 + SUM_SLACK:
        raise BadInput(f"{what} sums to {total:.6g}; a vote law sums to 1 at most")
    return laws


def _pool_laws(rule: Rule, laws: Floats, tiny: float) -> PoolLaw:
    if rule.n_max > LARGEST:
        raise BadInput(
            f"n_max = {rule.n_max}: whole pools are predicted up to {LARGEST} votes; "
            "for one class alone use the lattice, else a rule with a lower n_max"
        )
    table = arrangements(rule)
    order = np.argsort(laws.max(axis=1))  # laws alike need the same classes and counts
    parts = [
        _chunk(rule, table, laws[order[at : at + CHUNK]], tiny) for at in range(0, len(laws), CHUNK)
    ]
    back = np.argsort(order)
    whole = {name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])}
    return PoolLaw(**{name: values[back] for name, values in whole.items()})


def _chunk(rule: Rule, table: Arrangements, laws: Floats, tiny: float) -> PoolLaw:
    order = np.argsort(-laws, axis=1, kind="stable")
    masses = np.take_along_axis(laws, order, axis=1)
    by_rank, slack = _declared(table, masses, tiny)
    declared = np.empty_like(laws)
    np.put_along_axis(declared, order, by_rank.sum(axis=2), axis=1)
    open_after = 1.0 - by_rank.sum(axis=1).cumsum(axis=1)
    error = slack[:, :-1].sum(axis=1)
    going = np.arange(len(laws))
    for n in range(rule.n_max):
        if table.out[n, 0]:
            all_out, doubt = _all_out(table, masses[going], n, tiny)
            open_after[going, n] -= all_out - doubt / 2  # the middle of what is possible
            error[going] += doubt / 2
            most = open_after[going, n] + doubt / 2
            over = most <= 10 * tiny  # later votes are left out; they are no more likely
            error[going[over]] += (most * (rule.n_max - 1 - n))[over]
            open_after[going[over], n + 1 :] = 0.0
            going = going[~over]
    open_after[:, rule.n_max] = 0.0
    open_after = np.clip(open_after, 0.0, 1.0)
    samples = -np.diff(open_after, axis=1, prepend=1.0)
    return _assemble(declared, samples, error, slack[:, -1])


def _assemble(declared: Floats, samples: Floats, error: Floats, declared_error: Floats) -> PoolLaw:
    return PoolLaw(
        declared=declared,
        undecided=np.clip(1.0 - declared.sum(axis=-1), 0.0, 1.0),
        samples=samples,
        expected_samples=samples @ np.arange(samples.shape[-1]),
        error=error,
        declared_error=declared_error,
    )


def _declared(table: Arrangements, masses: Floats, tiny: float) -> tuple[Floats, Floats]:
    """P(rank c declared at n), shape (M, C, n_max+1), and the error of its sum over c up to n."""
    m, classes = masses.shape
    size = len(table.out)
    n, k = np.nonzero(table.crosses)
    weight = np.log(table.crosses[n, k]) + _log_choose(n, k)
    at_n = np.zeros((n.size, size))
    at_n[np.arange(n.size), n] = 1.0
    q = masses[:, :, None]
    declared = np.exp(weight + scipy.special.xlogy(k, q) + scipy.special.xlog1py(n - k, -q)) @ at_n
    oc = declared.sum(axis=2)
    reached = declared.cumsum(axis=2)
    slack = np.zeros((m, size))
    if classes > 2:  # Bonferroni: at most P(some three classes all cross), and by association
        e1, e2, e3 = np.zeros((3, m, size))
        for c in range(classes):
            e3 += e2 * reached[:, c]
            e2 += e1 * reached[:, c]
            e1 += reached[:, c]
        slack += e3
    pairs = table.crosses_second
    if not pairs.n.size:
        return declared, np.zeros((m, size))
    rest = pairs.n - pairs.first - pairs.second
    weight = (
        np.log(pairs.share)
        + scipy.special.gammaln(pairs.n + 1.0)
        - scipy.special.gammaln(pairs.first + 1.0)
        - scipy.special.gammaln(pairs.second + 1.0)
        - scipy.special.gammaln(rest + 1.0)
    )
    at_n = np.zeros((pairs.n.size, size))
    at_n[np.arange(pairs.n.size), pairs.n] = 1.0
    for low in range(1, classes):
        for high in range(low):
            both = oc[:, high] * oc[:, low]
            some = np.flatnonzero(both > tiny)
            slack += np.where(both > tiny, 0.0, both)[:, None]
            if not some.size:
                continue
            p, q = masses[some, high, None], masses[some, low, None]
            neither = np.maximum(1.0 - p - q, 0.0)
            other = weight + scipy.special.xlogy(rest, neither)
            for first, second, late in ((p, q, low), (q, p, high)):
                log = (
                    other
                    + scipy.special.xlogy(pairs.first, first)
                    + scipy.special.xlogy(pairs.second, second)
                )
                declared[some, late] -= np.exp(log) @ at_n
    return np.maximum(declared, 0.0), slack


def _all_out(table: Arrangements, masses: Floats, n: int, tiny: float) -> tuple[Floats, Floats]:
    """P(every class is out by n), shape (M,), and how much too large that may be."""
    out = table.out[n]
    # Below `sure` every arrangement puts a class out. Classes whose count is there but with
    # chance `tiny` are counted as out.
    sure = int(np.argmax(out < 1.0)) if (out[: n + 1] < 1.0).any() else n + 1
    least = 0.0
    if sure > n:
        return np.ones(len(masses)), np.zeros(len(masses))
    if tiny:
        least = float(scipy.special.betaincinv(sure, n - sure + 1, tiny))
    doubtful = (masses > least).sum(axis=1)
    all_out, doubt = np.ones(len(masses)), np.zeros(len(masses))
    doubt += tiny * ((masses > 0) & (masses <= least)).sum(axis=1)
    for needed in np.unique(doubtful[doubtful > 0]):
        rows = np.flatnonzero(doubtful == needed)
        all_out[rows], more = _product(table, masses[rows, :needed], n, sure)
        doubt[rows] += more
    return all_out, doubt


def _product(table: Arrangements, masses: Floats, n: int, sure: int) -> tuple[Floats, Floats]:
    """P(these classes are all out by n), shape (M,), and how much too large that may be."""
    pair, out = table.both_out[n], table.out[n]
    top = len(pair)
    # Poisson counts with total mean n are independent; dividing by P(total = n) conditions them.
    none = _poisson(np.maximum(1.0 - masses.sum(axis=1), 0.0), n, n + 1)
    rest, one, two = none, np.zeros_like(none), np.zeros_like(none)
    # Two classes with out shares u, v are both out with at least max(0, u+v-1), at most uv: the
    # covariance is at most doubt(u) doubt(v), and the product exceeds the truth by the sum of the
    # covariances at most (Lebowitz, for negatively associated events).
    could, doubt = out[:top] > 0, _doubt(out[:top])
    for c in range(2, masses.shape[1]):
        counts = _poisson(masses[:, c], n, top)
        rest = _convolve(rest, counts * out[:top])
        two = _convolve(two, counts * could) + _convolve(one, counts * doubt)
        one = _convolve(one, counts * could) + _convolve(none, counts * doubt)
        none = _convolve(none, counts * could)
    first = _poisson(masses[:, 0], n, top)
    second = _poisson(masses[:, 1] if masses.shape[1] > 1 else np.zeros(len(masses)), n, top)
    total, excess = np.zeros((2, len(masses)))
    for j in np.flatnonzero(first.max(axis=0) > NEGLIGIBLE):
        width = min(top, n - int(j) + 1)
        counts = first[:, j, None] * second[:, :width]
        left = np.arange(n - j, n - j - width, -1)
        total += (counts * rest[:, left]) @ pair[j, :width]
        if masses.shape[1] > 2:
            excess += (counts * two[:, left]) @ (pair[j, :width] > 0)
            excess += (counts * one[:, left]) @ _doubt(pair[j, :width])
    scale = _poisson(np.ones(1), n, n + 1)[0, n]
    return total / scale, np.minimum(excess, total) / scale


def _doubt(out: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(out * (1.0 - out), 0.0)))


def _convolve(sums: Floats, counts: Floats) -> Floats:
    """The law of a sum of counts, rowwise, cut at the length of `sums`, shape (M, n+1)."""
    total = sums * counts[:, :1]
    for k in range(1, counts.shape[1]):
        total[:, k:] += sums[:, :-k] * counts[:, k, None]
    return total


def _poisson(mass: Floats, n: int, size: int) -> Floats:
    """Poisson probabilities of 0 .. size-1 with mean n*mass, shape (M, size)."""
    k = np.arange(size)
    mean = n * mass[:, None]
    return np.asarray(np.exp(scipy.special.xlogy(k, mean) - mean - scipy.special.gammaln(k + 1.0)))


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> Floats:
    return np.asarray(
        scipy.special.gammaln(n + 1.0)
        - scipy.special.gammaln(k + 1.0)
        - scipy.special.gammaln(n - k + 1.0)
    )
