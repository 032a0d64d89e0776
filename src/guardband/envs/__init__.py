"""Problems as environments: Gymnasium for one agent, PettingZoo for many.

They need the extra `gym`.
"""

from guardband.extras import how_to_install

try:
    import gymnasium as _gymnasium  # noqa: F401
    import pettingzoo as _pettingzoo  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"guardband.envs needs gymnasium and pettingzoo ({error}): {how_to_install('gym')}."
    ) from error

from guardband.envs.bandit import BanditEnv
from guardband.envs.fleet import FleetEnv

__all__ = ["BanditEnv", "FleetEnv"]
