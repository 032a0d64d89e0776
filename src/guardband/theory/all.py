"""All bounds of the paper for one setting, in the order of the paper."""

from __future__ import annotations

import math

from guardband.theory.communication import communication, epochs
from guardband.theory.conservative import (
    L5,
    L6_of_L7,
    L7_lower,
    L7_upper,
    unknown_thm_lower,
    unknown_thm_upper,
    window,
)
from guardband.theory.regret import ECC, T1, Thm1_1, prop1, prop1_1
from guardband.theory.safety import L1, L2, L2_2_, L3, L3_2, L4, L4_2, confidence
from guardband.theory.setting import Bound, Setting
from guardband.theory.tools import LT2, Azu

__all__ = ["all_bounds"]


def all_bounds(given: Setting, *, conservative: float | None = None) -> list[Bound]:
    """Return every bound of the paper, each at its most favourable.

    `conservative` is the number of conservative rounds per agent where a bound needs it; None
    takes the least that the easiest gate allows (`L2`). `L1` is at the largest lambda_min(V) that
    the horizon allows.
    """
    gate = L2(given)
    least = min(gate.terms["earliest round"], float(given.horizon))
    n = least if conservative is None else conservative
    d, T, level = given.dim, given.horizon, given.level
    unknown = min(L4_2(given).terms["earliest round"], float(T)) if conservative is None else n
    return [
        confidence(given),
        L1(given, beta=given.start(), lambda_min=given.reach()),
        gate,
        L3(given),
        L4(given),
        prop1(given, conservative=n, form="statement"),
        prop1(given, conservative=n, form="proof"),
        L5(given, conservative=n),
        *L6_of_L7(given),
        L7_lower(given),
        L7_upper(given),
        window(given),
        T1(given),
        epochs(given, printed=True),
        epochs(given),
        communication(given, printed=True),
        communication(given),
        Azu(steps=given.observations, increment=1.0, delta=level / 2.0),
        LT2(
            rounds=given.observations,
            dim=d,
            trace=given.ridge * d,
            logdet=d * math.log(given.ridge),
            feature_bound=given.feature_bound,
        ),
        ECC(given),
        L3_2(given),
        L4_2(given),
        L2_2_(given),
        prop1_1(given, conservative=unknown),
        unknown_thm_lower(given),
        unknown_thm_upper(given),
        Thm1_1(given),
    ]
