"""The rules that make a whole sensing run cheapest, under one certificate in every round.

A run pays for samples, for measurement rounds, and for images that end declared wrong or not at
all. Along a path of vote laws the price of going on from round t is what the later rounds cost,
so the rule of a round is a problem of one pool: its samples, weighed by how often the round is
reached, less the price of going on for what it declares, with OC(tau) <= eps. Dynamic programming
on the lattice solves it at any price on OC(tau), and the least price that meets eps is the one.
Reach and prices depend on the rules, so rounds are solved backwards, again and again, for as long
as that helps.

Pools are followed as the paper does (`path.along`): a class is declared by its own OC, and the
samples are the leader's. That is quick and close; judge the result by `along(..., exact=True)`,
and by replay on other images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.boundaries import build
from suffice.boundary_search import improve, totals_of
from suffice.errors import BadInput
from suffice.inputs import probability, whole
from suffice.lattice import Floats, law
from suffice.path import PathMeans, along
from suffice.priced import Problem, Vertex, binomial_tables, solve
from suffice.rule import Rule
from suffice.rules import sequential

__all__ = ["OptimalPath", "optimal_for_path", "optimal_like"]

SWEEPS = 3
MOVES = 24
MISSES = (1.0, 4.0)  # prices of a miss tried, in those of all rounds
HALVINGS = 5
STEPS = 40  # prices tried on OC(tau)
NEAR = 1.02  # two prices this close, of which one meets eps and one does not, are the same
TINY = 1e-9  # a certificate that is met at this price costs nothing
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OptimalPath:
    """Rules for a sensing run, and what they are predicted to do on the paths of the design."""

    rules: Rule | tuple[Rule, ...]
    """One rule for all rounds, or one a round."""
    round_cost: float
    miss_cost: float
    means: PathMeans
    """As the paper predicts them, on the paths that the rules were designed for."""

    @property
    def each(self) -> tuple[Rule, ...]:
        """The rules, one or as many as rounds."""
        return (self.rules,) if isinstance(self.rules, Rule) else self.rules

    @property
    def cost(self) -> float:
        """Samples and priced rounds of the average path; misses are not in it."""
        return self.means.samples + self.round_cost * self.means.rounds


def optimal_for_path(
    masses: ArrayLike,
    truth: ArrayLike,
    eps: Any,
    n_max: int,
    round_cost: float,
    tau: Any = None,
    each_round: bool = False,
    miss_cost: float | None = None,
    accuracy: float | None = None,
) -> OptimalPath:
    """The cheapest run: mean samples + round_cost * rounds + miss_cost * P(not declared right).

    `masses` has shape (I, T, C), the vote laws of I paths (`VoteLog.laws()`), and `truth` (I,).
    Every rule has OC(tau) <= eps. With an `accuracy` to keep in place of tau, the cheapest of
    many thresholds is taken. A round of measurement costs `round_cost` samples; `miss_cost` is
    that of all rounds when left out.

    >>> paths = [[[0.5, 0.3], [0.9, 0.1]], [[0.4, 0.4], [0.95, 0.05]]]
    >>> run = optimal_for_path(paths, [0, 0], 0.1, 8, round_cost=5, tau=0.6, each_round=True)
    >>> [bool(rule.stop[0]) for rule in run.rules]  # the first round is not worth a look
    [True, False]
    """
    if tau is None and accuracy is None:
        raise BadInput("give tau, or an accuracy for which a tau is to be found")
    if not (np.isfinite(round_cost) and round_cost >= 0):
        raise BadInput(f"round_cost = {round_cost} must be a number of at least 0")
    paths = _Paths.of(masses, truth, whole(n_max, "n_max"), float(probability(eps, "eps")))
    miss = round_cost * paths.rounds if miss_cost is None else miss_cost
    if not (np.isfinite(miss) and miss >= 0):
        raise BadInput(f"miss_cost = {miss} must be a number of at least 0")
    if tau is not None:
        return _design(paths, float(probability(tau, "tau")), round_cost, miss, each_round)
    wanted = float(probability(accuracy, "accuracy"))
    # A threshold whose power of n_max is above eps cannot be certified by n_max votes.
    top = min(0.96, paths.eps ** (1 / paths.n_max))
    designs = [
        _design(paths, threshold, round_cost, miss, each_round)
        for threshold in np.round(np.arange(0.50, top, 0.05), 2).tolist()
    ]
    good = [design for design in designs if design.means.accuracy >= wanted]
    if not good:
        best = max((design.means.accuracy for design in designs), default=np.nan)
        raise BadInput(
            f"accuracy = {wanted:g} is out of reach on these paths: the best is {best:.4f}; "
            "ask for less, or sense more rounds"
        )
    return min(good, key=lambda design: design.cost)


def optimal_like(
    rule: Rule,
    masses: ArrayLike,
    truth: ArrayLike,
    tau: Any,
    eps: Any,
    each_round: bool = False,
    more_rounds: float = 0.014,
    less_accuracy: float = 0.002,
) -> OptimalPath:
    """The fewest samples with about the rounds and the accuracy of `rule`, at its certificate.

    The prices of a round and of a miss are searched for: rounds may be `more_rounds` of the
    rule's more, and accuracy `less_accuracy` less, as predicted on these paths.
    """
    paths = _Paths.of(masses, truth, rule.n_max, float(probability(eps, "eps")))
    base = along(rule, paths.masses, paths.truth).mean
    threshold = float(probability(tau, "tau"))
    best: OptimalPath | None = None
    start: list[Rule] | None = None
    for factor in MISSES:
        low, high = 3.0, 9.0  # powers of two
        for _ in range(HALVINGS):
            price = 2 ** ((low + high) / 2)
            design = _design(
                paths,
                threshold,
                price,
                factor * price * paths.rounds,
                each_round,
                start=start,
                polish=False,
            )
            if each_round:
                start = list(design.each)  # a neighbour in price is a good place to begin
            if design.means.rounds > base.rounds * (1 + more_rounds):
                low = (low + high) / 2
                continue
            high = (low + high) / 2
            fine = design.means.accuracy >= base.accuracy - less_accuracy
            if fine and (best is None or design.means.samples < best.means.samples):
                best = design
    if best is None:
        raise BadInput(
            f"no rule certified at tau = {tau} keeps the rounds and the accuracy of "
            f"{rule.name!r} on these paths; allow more rounds or less accuracy"
        )
    return _design(paths, threshold, best.round_cost, best.miss_cost, each_round)


@dataclass(frozen=True, eq=False)
class _Paths:
    """Vote laws as indices into their distinct masses."""

    masses: Floats  # (I, T, C)
    truth: Whole  # (I,)
    n_max: int
    eps: float
    distinct: Floats  # (J,)
    each: Whole  # (I, T, C), into distinct
    leader: Whole  # (I, T), into distinct
    right: NDArray[np.bool_]  # (I, 1, C)
    tables: list[Floats]  # [n]: P(k of n | distinct), (J, n+1)

    @classmethod
    def of(cls, masses: ArrayLike, truth: ArrayLike, n_max: int, eps: float) -> _Paths:
        pi, true = np.asarray(masses, dtype=np.float64), np.asarray(truth, dtype=np.int64)
        if pi.ndim != 3 or true.shape != pi.shape[:1] or not pi.size:
            raise BadInput(
                f"masses of shape {pi.shape} and truth of shape {true.shape} do not fit; "
                "give (images, rounds, classes) and (images,)"
            )
        if (pi < 0).any() or (pi.sum(axis=-1) > 1 + 1e-9).any():
            raise BadInput("masses hold a row that is no law; each is 0 or more and sums to 1")
        if (true < 0).any():
            raise BadInput("truth holds a label below 0; a design needs the true labels")
        classes = np.arange(pi.shape[2])
        # A class that no path votes for has no mass; it only makes room for its label.
        distinct, each = np.unique(pi, return_inverse=True)
        each = each.reshape(pi.shape)
        return cls(
            pi,
            true,
            n_max,
            eps,
            distinct,
            each,
            each.max(axis=-1),
            true[:, None, None] == classes,
            binomial_tables(n_max, distinct),
        )

    @property
    def rounds(self) -> int:
        return int(self.masses.shape[1])


def _design(
    paths: _Paths,
    tau: float,
    round_cost: float,
    miss_cost: float,
    each_round: bool,
    start: list[Rule] | None = None,
    polish: bool = True,
) -> OptimalPath:
    """Solve the rounds backwards, several times, and keep the best."""
    run = _Run(paths, tau, round_cost, miss_cost, start)
    best, least = None, np.inf
    sweeps = SWEEPS if each_round else 2 * SWEEPS  # one rule for all settles more slowly
    if start is not None:
        sweeps -= 1
    for sweep in range(sweeps):
        last = sweep == sweeps - 1
        run.sweep(each_round or sweep == 0, MOVES if polish and last else 0)
        total = run.total()
        if total < least and (each_round or sweep > 0):
            best, least = run.rules, total
    rules: Rule | tuple[Rule, ...] = (
        tuple(best or run.rules) if each_round else (best or run.rules)[0]
    )
    means = along(rules if isinstance(rules, Rule) else list(rules), paths.masses, paths.truth)
    return OptimalPath(rules, round_cost, miss_cost, means.mean)


class _Run:
    """The rules so far, and what each round of each path costs from there on."""

    def __init__(
        self,
        paths: _Paths,
        tau: float,
        round_cost: float,
        miss_cost: float,
        start: list[Rule] | None,
    ) -> None:
        self.paths, self.tau = paths, tau
        self.round_cost, self.miss_cost = round_cost, miss_cost
        self.false = [table[0] for table in binomial_tables(paths.n_max, np.array([tau]))]
        self.rules = start or [sequential(tau, paths.eps, n_max=paths.n_max)] * paths.rounds
        self.moves = 0  # changes of single entries that may follow a solution
        self.weights: tuple[Floats, Floats] | None = None
        self.nothing = [np.zeros(n + 1) for n in range(paths.n_max + 1)]
        self.prices: dict[int, float] = {}
        self._laws: dict[Rule, tuple[Floats, Floats]] = {}

    def total(self) -> float:
        """What the average path costs."""
        return float(self._ahead()[:, 0].mean())

    def sweep(self, each_round: bool, moves: int) -> None:
        """Find the rules anew, at the reach and the prices of those before."""
        self.moves = moves
        reach, ahead, rounds = self._reach(), self._ahead(), self.paths.rounds
        if not each_round:
            # One rule for all rounds sets its own reach and prices: halfway steps keep it from
            # swinging between looking always and never.
            if self.weights is not None:
                reach = (reach + self.weights[0]) / 2
                ahead = (ahead + self.weights[1]) / 2
            self.weights = reach, ahead
            self.rules = [self._best(np.arange(rounds), reach, ahead)] * rounds
            return
        rules = list(self.rules)
        for t in range(rounds - 1, -1, -1):
            rules[t] = self._best(np.array([t]), reach, ahead)
            ahead[:, t] = self._from(rules[t], t, ahead[:, t + 1])
        self.rules = rules

    def _best(self, rounds: Whole, reach: Floats, ahead: Floats) -> Rule:
        """The rule for these rounds: the least price on OC(tau) that meets eps."""
        paths, size = self.paths, len(self.paths.distinct)
        weight = reach[:, rounds] / len(paths.truth)
        samples = np.bincount(paths.leader[:, rounds].ravel(), weight.ravel(), size)
        saved = ahead[:, rounds + 1][:, :, None] - self.miss_cost * ~paths.right
        gains = np.bincount(
            paths.each[:, rounds].ravel(), (weight[:, :, None] * saved).ravel(), size
        )
        problem = Problem(
            tau=self.tau,
            eps=paths.eps,
            miss=1.0,
            n_max=paths.n_max,
            looks=np.ones(paths.n_max + 1, dtype=bool),
            cost=[samples @ table for table in paths.tables],
            false=self.false,
            missed=self.nothing,
            reward=[gains @ table for table in paths.tables],
        )
        now = self.rules[int(rounds[0])]
        # One rule in place of many is no better than they are: it is taken as it comes.
        options = [(now.declare, now.stop)] if len(rounds) == 1 else []
        vertex = self._fitting(problem, int(rounds[0]))
        if vertex is not None:
            options.append((vertex.declare, vertex.stop))
        found = [improve(problem, *option, most=self.moves) for option in options]
        _, declare, stop = min(
            (one for one in found if problem.feasible(one[0])), key=lambda one: float(one[0][0])
        )
        parameters = {"tau": self.tau, "eps": paths.eps, "n_max": paths.n_max}
        return build(declare, stop, "optimal for path", parameters)

    def _fitting(self, problem: Problem, at: int) -> Vertex | None:
        """The solution at the least price on OC(tau) that meets eps, near the last one there."""
        price = self.prices.get(at, 1.0)
        low, high, best, jump = 0.0, np.inf, None, 1.2
        for _ in range(STEPS):
            vertex = solve(problem, np.array([price, 0.0]))
            # The boundaries may differ from the solution, where that is no upper and lower set.
            if problem.feasible(totals_of(problem, vertex.declare, vertex.stop)):
                high, best = price, vertex
            else:
                low = price
            if high <= low * NEAR:
                break
            if low and high < np.inf:
                price = np.sqrt(low * high)
            else:
                price, jump = price * (jump if low else 1 / jump), jump**2
            if price < TINY:
                break
        self.prices[at] = high if high < np.inf else 1.0
        return best

    def _from(self, rule: Rule, t: int, after: Floats) -> Floats:
        """What each path costs from round t on, given what it costs after it, (I,)."""
        oc, samples = self._law(rule)
        each = oc[self.paths.each[:, t]]
        declared = np.minimum(each.sum(axis=1), 1.0)
        wrong = (each * ~self.paths.right[:, 0]).sum(axis=1)
        cost = self.round_cost + samples[self.paths.leader[:, t]]
        return np.asarray(cost + (1 - declared) * after + self.miss_cost * wrong)

    def _ahead(self) -> Floats:
        """What each path costs from each round on, (I, T + 1); the last is not to be declared."""
        paths = self.paths
        ahead = np.full((len(paths.truth), paths.rounds + 1), self.miss_cost)
        for t in range(paths.rounds - 1, -1, -1):
            ahead[:, t] = self._from(self.rules[t], t, ahead[:, t + 1])
        return ahead

    def _reach(self) -> Floats:
        """rho_t of each path, (I, T)."""
        paths = self.paths
        reach = np.ones((len(paths.truth), paths.rounds))
        for t in range(paths.rounds - 1):
            declared = self._law(self.rules[t])[0][paths.each[:, t]].sum(axis=1)
            reach[:, t + 1] = reach[:, t] * (1 - np.minimum(declared, 1.0))
        return reach

    def _law(self, rule: Rule) -> tuple[Floats, Floats]:
        """OC and E[N] at every distinct mass, (J,) each."""
        if rule not in self._laws:
            result = law(rule, self.paths.distinct)
            self._laws[rule] = result.declare_probability, result.expected_samples
        return self._laws[rule]
