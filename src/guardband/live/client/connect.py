"""`gb.connect`, which starts a live agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guardband.errors import InvalidTypeError
from guardband.live.client.agent import LiveAgent
from guardband.live.client.joining import default_folder
from guardband.live.link import link_to
from guardband.live.protocol.space import SpaceSettings

__all__ = ["connect"]


def connect(
    coordinator: str,
    *,
    task: str = "",  # a sentence says that it is missing
    space: str = "default",
    settings: SpaceSettings | None = None,
    uses: Sequence[int | str] | None = None,
    token: str | None = None,
    state_dir: str | Path | None = None,
    background: bool = True,
    shadow: bool = False,
    ephemeral: bool = False,
    keep_decisions: int = 100_000,
    seed: int | None = None,
) -> LiveAgent:
    """Return an agent for one task of a space, which learns together with the other tasks' agents.

    Parameters
    ----------
    coordinator
        "local:FOLDER": a file that the processes of one host share, no server; or the address of
        a coordinator, "https://...".
    task
        The name of this agent's task in the space; it must be given.
    space
        The name of the space; `settings.name` where that is given and this is not.
    settings
        What the space is. With "local:" the first agent makes the space from it; where it exists,
        what is given must be what it has.
    uses
        The features that the task uses, by number or by name; None: all. In a space with named
        features a column's name stands for all of its features.
    token
        What the coordinator's operator gave out for this task; for HTTP. None: from the variable
        GUARDBAND_AGENT_TOKEN.
    state_dir
        Where the journal is kept. Processes on one host that share it are one agent. By default
        FOLDER/agents/SPACE/TASK, or with HTTP a folder of the user's.
    background
        True: messages are carried by threads in the background; False: when `sync` is called.
    shadow
        True: decide and write everything down, but always play the baseline.
    ephemeral
        True: this state folder will not come back, as in a container: `close` ends its stream.
    keep_decisions
        How many decisions that have ended the journal keeps, for later questions.
    seed
        For the coins of conservative rounds; None: from the system's randomness.

    Returns
    -------
    LiveAgent
        It decides and observes without waiting for the network.

    Examples
    --------
    >>> import tempfile
    >>> import guardband as gb
    >>> space = gb.SpaceSettings(features=["match", "fresh"], agents=2, contexts="per-request")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with gb.connect(f"local:{folder}", task="movies", settings=space) as agent:
    ...         agent.decide([[0.6, 0.2], [0.1, 0.9]], baseline=0).kind
    'baseline'
    """
    if not isinstance(space, str):
        raise InvalidTypeError(f"space must be a text, the name of a space, not {space!r}.")
    if not isinstance(state_dir, str | Path | None):
        raise InvalidTypeError(f"state_dir must be the path of a folder, not {state_dir!r}.")
    if settings is not None:
        if not isinstance(settings, SpaceSettings):
            raise InvalidTypeError(f"settings must be a gb.SpaceSettings, not {settings!r}.")
        if "name" not in settings.model_fields_set:
            settings = settings.model_copy(update={"name": space})
        elif space == "default":
            space = settings.name
    link = link_to(coordinator, token)
    folder = default_folder(coordinator, space, task)
    return LiveAgent(
        link,
        state_dir=folder if state_dir is None else Path(state_dir),
        create=coordinator.startswith("local:"),
        task=task,
        space=space,
        settings=settings,
        uses=uses,
        background=background,
        shadow=shadow,
        ephemeral=ephemeral,
        keep_decisions=keep_decisions,
        seed=seed,
    )
