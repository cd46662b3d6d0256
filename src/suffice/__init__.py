"""How many samples suffice? Calibrated stopping for votes drawn from expensive samplers.

Design a rule, stop a pool with it, and know what it certifies and costs:

>>> rule = sequential(tau=0.78, eps=0.05, n_max=32)
>>> pool = Pool(rule)
>>> while pool.open:
...     pool.add("7")  # the class of another sample
>>> print(pool.verdict, pool.n)
declared('7') 15
>>> round(certified_tau(rule, eps=0.05), 2), round(expected_samples(rule, 0.9), 1)
(0.78, 19.7)
"""

from suffice.bounds import information_bound, leader_bound
from suffice.calibrate import certified_tau, match_fixed, match_sequential
from suffice.curtail import curtail
from suffice.errors import BadInput, CalibrationInfeasible, RunFailed
from suffice.interval import interval
from suffice.lattice import Law, expected_samples, law, oc
from suffice.loop_error import split_eps
from suffice.optimal import optimal
from suffice.optimal_path import optimal_for_path
from suffice.path import along
from suffice.plan import plan
from suffice.poll import DrawFailed, Ledger, apoll, poll
from suffice.pool import Pool, Verdict
from suffice.pool_law import pool_law, pool_laws
from suffice.replay import Replay
from suffice.rule import Rule
from suffice.rule_files import load_rules, save_rules
from suffice.rules import e_process, one_look, plug_in, sequential, sprt
from suffice.votes import VoteLog, read_log

__all__ = [
    "BadInput",
    "CalibrationInfeasible",
    "DrawFailed",
    "Law",
    "Ledger",
    "Pool",
    "Replay",
    "Rule",
    "RunFailed",
    "Verdict",
    "VoteLog",
    "along",
    "apoll",
    "certified_tau",
    "curtail",
    "e_process",
    "expected_samples",
    "information_bound",
    "interval",
    "law",
    "leader_bound",
    "load_rules",
    "match_fixed",
    "match_sequential",
    "oc",
    "one_look",
    "optimal",
    "optimal_for_path",
    "plan",
    "plug_in",
    "poll",
    "pool_law",
    "pool_laws",
    "read_log",
    "save_rules",
    "sequential",
    "split_eps",
    "sprt",
]
