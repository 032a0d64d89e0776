"""Links from agents to coordinators: in the same process over a shared file, or over HTTP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.lazy import lazy_imports
from guardband.live.link.base import Link, Unreachable

if TYPE_CHECKING:
    from guardband.live.link.http import HttpLink
else:
    __getattr__ = lazy_imports(__name__)

__all__ = ["HttpLink", "Link", "Unreachable", "link_to"]


def link_to(coordinator: str, token: str | None = None) -> Link:
    """Return the link to a coordinator.

    Parameters
    ----------
    coordinator
        "local:FOLDER", shared by the processes of one host, or "http://..." or "https://...".
    token
        For HTTP: "gb_..."; None: from the variable GUARDBAND_AGENT_TOKEN.
    """
    if not isinstance(coordinator, str):
        raise InvalidTypeError(
            f"coordinator must be a text such as 'local:./gb', not {coordinator!r}."
        )
    kind, _, address = coordinator.partition(":")
    if kind == "local" and address:
        from guardband.live.link.local import LocalLink  # noqa: PLC0415 - needs the extra

        return LocalLink(address)
    if token is not None and not isinstance(token, str):
        raise InvalidTypeError(f"token must be a text, not one of type {type(token).__name__}.")
    if kind in ("http", "https") and address.startswith("//"):
        from guardband.live.link.http import HttpLink  # noqa: PLC0415 - needs the extra

        said = token or os.environ.get("GUARDBAND_AGENT_TOKEN") or ""
        return HttpLink(coordinator, said.strip() or None)  # files end with a line break
    raise InvalidValueError(
        f"coordinator {coordinator!r} is neither 'local:FOLDER' nor 'http(s)://HOST:PORT'."
    )
