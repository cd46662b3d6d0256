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
CHUNK = 2048  # laws worked on at once, so that the tables stay in the cache
CELLS = 2_000_000  # entries of a table of laws by crossings
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
    none_declared = 1.0 - by_rank.sum(axis=1).cumsum(axis=1)
    least, most = none_declared - slack, none_declared + slack  # of P(open after n)
    going = np.arange(len(laws))
    for n in range(rule.n_max):
        if table.out[n, 0]:
            all_out, excess = _all_out(table, masses[going], n, tiny)
            least[going, n] -= all_out
            most[going, n] -= all_out - excess
            over = most[going, n] <= 10 * tiny
            least[going[over], n + 1 :] = 0.0  # not looked at: no more likely to be open than now
            going = going[~over]
    least[:, -1] = most[:, -1] = 0.0
    # A pool does not open again, which tightens both bounds.
    most = np.minimum.accumulate(np.clip(most, 0.0, 1.0), axis=1)
    least = np.maximum.accumulate(np.clip(least, 0.0, most)[:, ::-1], axis=1)[:, ::-1]
    open_after = (least + most) / 2
    error = ((most - least) / 2).sum(axis=1)
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
    step = max(CELLS // pairs.n.size, 1)
    for low in range(1, classes):
        for high in range(low):
            both = oc[:, high] * oc[:, low]
            some = np.flatnonzero(both > tiny)
            slack += np.where(both > tiny, 0.0, both)[:, None]
            for at in range(0, some.size, step):
                rows = some[at : at + step]
                p, q = masses[rows, high, None], masses[rows, low, None]
                neither = np.maximum(1.0 - p - q, 0.0)
                other = weight + scipy.special.xlogy(rest, neither)
                for first, second, late in ((p, q, low), (q, p, high)):
                    log = (
                        other
                        + scipy.special.xlogy(pairs.first, first)
                        + scipy.special.xlogy(pairs.second, second)
                    )
                    declared[rows, late] -= np.exp(log) @ at_n
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
    all_out = np.ones(len(masses))
    excess = tiny * ((masses > 0) & (masses <= least)).sum(axis=1)
    for needed in np.unique(doubtful[doubtful > 0]):
        rows = np.flatnonzero(doubtful == needed)
        all_out[rows], more = _product(table, masses[rows, :needed], n, sure)
        excess[rows] += more
    return all_out, excess


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
    shares, could, doubt = (of(out[:top])[:, None] for of in (np.array, np.sign, _doubt))
    for c in range(2, masses.shape[1]):
        counts = _poisson(masses[:, c], n, top)
        rest = _convolve(rest, counts * shares)
        two = _convolve(two, counts * could) + _convolve(one, counts * doubt)
        one = _convolve(one, counts * could) + _convolve(none, counts * doubt)
        none = _convolve(none, counts * could)
    first = _poisson(masses[:, 0], n, top)
    second = _poisson(masses[:, 1] if masses.shape[1] > 1 else np.zeros(len(masses)), n, top)
    total, excess = np.zeros((2, len(masses)))
    for j in np.flatnonzero(first.max(axis=1) > NEGLIGIBLE):
        width = min(top, n - int(j) + 1)
        counts = first[j] * second[:width]
        left = slice(n - j, n - j - width if n - j >= width else None, -1)
        total += pair[j, :width] @ (counts * rest[left])
        if masses.shape[1] > 2:
            excess += np.sign(pair[j, :width]) @ (counts * two[left])
            excess += _doubt(pair[j, :width]) @ (counts * one[left])
    scale = _poisson(np.ones(1), n, n + 1)[n]
    return total / scale, np.minimum(excess, total) / scale


def _doubt(out: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(out * (1.0 - out), 0.0)))


def _convolve(sums: Floats, counts: Floats) -> Floats:
    """The law of a sum of counts, for each column, cut at the length of `sums`, shape (n+1, M)."""
    total: Floats = sums * counts[0]
    for k in np.flatnonzero(counts.max(axis=1) > NEGLIGIBLE):
        if k:
            total[k:] += sums[:-k] * counts[k]
    return total


def _poisson(mass: Floats, n: int, size: int) -> Floats:
    """Poisson probabilities of 0 .. size-1 with mean n*mass, shape (size, M)."""
    k = np.arange(size)[:, None]
    mean = n * mass
    return np.asarray(np.exp(scipy.special.xlogy(k, mean) - mean - scipy.special.gammaln(k + 1.0)))


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> Floats:
    return np.asarray(
        scipy.special.gammaln(n + 1.0)
        - scipy.special.gammaln(k + 1.0)
        - scipy.special.gammaln(n - k + 1.0)
    )
