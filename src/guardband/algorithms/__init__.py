"""The algorithms; `ALGORITHMS` has them under the names of the command line."""

# isort: off
# The list has them in the order of these imports.
from guardband.algorithms.guard_ucb import GuardUCB
from guardband.algorithms.guard_ucb_free import GuardUCBFree
from guardband.algorithms.disc_ucb import DiscUCB
from guardband.algorithms.disc_ucb_unknown import DiscUCBUnknown
from guardband.algorithms.dis_lin_ucb import DisLinUCB
from guardband.algorithms.sclts import SCLTS
from guardband.algorithms.scl_ucb import SCLUCB
from guardband.algorithms.ma_scl_ucb import MASCLUCB
from guardband.algorithms.roful import ROFUL
from guardband.algorithms.dis_lsb import DisLSB
from guardband.algorithms.fed_pe import FedPE
from guardband.algorithms.fed_pecd import FedPECD
from guardband.algorithms.sege import SEGE
from guardband.algorithms.cl_ucb import CLUCB
from guardband.algorithms.c_square_cb import CSquareCB
from guardband.algorithms.fed_lin_ucb import FedLinUCB
from guardband.algorithms.lin_ucb import LinUCB
from guardband.algorithms.baseline import Baseline
from guardband.algorithms.oracle import Oracle
from guardband.algorithms.guarded import Guarded

# isort: on
from importlib import import_module
from pkgutil import iter_modules

from guardband.algorithms.base import Confidence, Conservative, paper_trigger
from guardband.algorithms.design import Design, optimal_design
from guardband.algorithms.phases import Phases, Phasing
from guardband.algorithms.plan import Algorithm, Plan, Traffic, packed
from guardband.algorithms.policy import Policy, Rate
from guardband.algorithms.registry import (
    ALGORITHMS,
    ORACLE,
    AlgorithmEntry,
    entry_of,
    plain_name,
    register,
    setting,
)

for _module in iter_modules(__path__):  # a new file comes last in the list, without an import
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "ALGORITHMS",
    "CLUCB",
    "MASCLUCB",
    "ORACLE",
    "ROFUL",
    "SCLTS",
    "SCLUCB",
    "SEGE",
    "Algorithm",
    "AlgorithmEntry",
    "Baseline",
    "CSquareCB",
    "Confidence",
    "Conservative",
    "Design",
    "DisLSB",
    "DisLinUCB",
    "DiscUCB",
    "DiscUCBUnknown",
    "FedLinUCB",
    "FedPE",
    "FedPECD",
    "GuardUCB",
    "GuardUCBFree",
    "Guarded",
    "LinUCB",
    "Oracle",
    "Phases",
    "Phasing",
    "Plan",
    "Policy",
    "Rate",
    "Traffic",
    "entry_of",
    "optimal_design",
    "packed",
    "paper_trigger",
    "plain_name",
    "register",
    "setting",
]
