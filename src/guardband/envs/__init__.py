"""Problems as environments: Gymnasium for one agent, PettingZoo for many.

They need the extra `gym`: pip install 'guardband[gym]'.
"""

try:
    import gymnasium as _gymnasium  # noqa: F401
    import pettingzoo as _pettingzoo  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"guardband.envs needs gymnasium and pettingzoo ({error}): "
        "install them with pip install 'guardband[gym]'."
    ) from error

from guardband.envs.bandit import BanditEnv
from guardband.envs.fleet import FleetEnv

__all__ = ["BanditEnv", "FleetEnv"]
