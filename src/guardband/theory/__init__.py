"""What is proved, as numbers: every bound of the paper, and those of Guard-UCB.

A bound of the paper has its label in the paper's LaTeX source for a name, takes a `Setting` and
returns a `Bound`: its value, whether its condition is met, and whether it says anything. Nothing
is corrected: what is wrong in print is computed as printed; docs/theory.md says where that is.
"""

from guardband.theory.all import all_bounds
from guardband.theory.communication import communication, epochs, trigger
from guardband.theory.conservative import (
    L5,
    L6_lower,
    L6_of_L7,
    L6_upper,
    L7_lower,
    L7_upper,
    unknown_thm_lower,
    unknown_thm_upper,
    window,
)
from guardband.theory.guard import (
    confidence_share,
    guard_information,
    guard_least_weight,
    guard_policy_regret,
    guard_strict_escape,
    guard_uncertified_rounds,
)
from guardband.theory.regret import ECC, T1, Thm1_1, prop1, prop1_1
from guardband.theory.safety import L1, L2, L2_2_, L3, L3_2, L4, L4_2, confidence
from guardband.theory.setting import Bound, Setting
from guardband.theory.tools import LT2, Azu, LT2_logdet

__all__ = [
    "ECC",
    "L1",
    "L2",
    "L2_2_",
    "L3",
    "L3_2",
    "L4",
    "L4_2",
    "L5",
    "LT2",
    "T1",
    "Azu",
    "Bound",
    "L6_lower",
    "L6_of_L7",
    "L6_upper",
    "L7_lower",
    "L7_upper",
    "LT2_logdet",
    "Setting",
    "Thm1_1",
    "all_bounds",
    "communication",
    "confidence",
    "confidence_share",
    "epochs",
    "guard_information",
    "guard_least_weight",
    "guard_policy_regret",
    "guard_strict_escape",
    "guard_uncertified_rounds",
    "prop1",
    "prop1_1",
    "trigger",
    "unknown_thm_lower",
    "unknown_thm_upper",
    "window",
]
