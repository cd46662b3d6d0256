"""How many samples suffice? Calibrated stopping for votes drawn from expensive samplers."""

from suffice.errors import BadInput, CalibrationInfeasible, RunFailed
from suffice.rule import Rule

__all__ = ["BadInput", "CalibrationInfeasible", "Rule", "RunFailed"]
