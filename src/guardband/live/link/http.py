"""A coordinator at the other end of an HTTP connection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from guardband.live.link.base import Unreachable
from guardband.live.protocol.messages import (
    News,
    OpenEpoch,
    Refused,
    Register,
    Registered,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums

try:
    import httpx
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError(
        "a coordinator over HTTP needs httpx: pip install 'guardband[live]'"
    ) from error

__all__ = ["HttpLink"]

CONNECT_S = 5.0
ANSWER_S = 15.0
LONGEST_POLL_S = 25.0
LONGEST_ID = 20  # of a token, in messages; the secret is never shown
NOT_NOW = (408, 425, 429)  # and everything from 500 on


class HttpLink:
    """Connections that are kept, timeouts on everything, certificates checked.

    Parameters
    ----------
    url
        Such as "https://gb.example".
    token
        "gb_...", sent with every request.
    transport
        For tests.
    """

    def __init__(
        self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url, self._token, self._transport = url.rstrip("/"), token, transport
        self.after_fork()

    def hold(self) -> None:
        """Have no file to put away."""

    def let_go(self) -> None:
        """Have none to take up again."""

    def after_fork(self) -> None:
        """Begin with connections of one's own."""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            transport=self._transport,
        )

    def _ask(self, method: str, path: str, *, more_s: float = 0.0, **given: Any) -> Any:
        """Return the answer as plain data, None where there is none."""
        try:
            timeout = httpx.Timeout(ANSWER_S + more_s, connect=CONNECT_S)
            answer = self._http.request(method, path, timeout=timeout, **given)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
            # RuntimeError: the client was closed while another thread was about to use it.
            raise Unreachable(f"{self.url} does not answer: {error}") from error
        if answer.status_code == httpx.codes.NO_CONTENT:
            return None
        try:
            data = answer.json()
        except ValueError:
            raise Unreachable(
                f"{self.url} answers {answer.status_code} with what is not JSON: is it a "
                "coordinator?"
            ) from None
        if answer.is_success:
            return data
        detail = str(data.get("detail", "")) if isinstance(data, dict) else ""
        if answer.status_code in NOT_NOW or answer.status_code >= 500:
            wait = float(data.get("retry_after_s", 0.0)) if isinstance(data, dict) else 0.0
            raise Unreachable(f"{self.url} answers {answer.status_code}: {detail}", wait)
        known = dict(data) if isinstance(data, dict) else {}
        code = str(known.pop("code", "error"))
        more = {k: v for k, v in known.items() if k not in ("type", "title", "status", "detail")}
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            detail = self._no_entry()
        raise Refused(code, answer.status_code, detail, **more)

    def _no_entry(self) -> str:
        """Return what to do about a token; the server does not say which of these it is."""
        if self._token is None:
            return (
                "no token: pass token=... or set GUARDBAND_AGENT_TOKEN (guardband token create "
                "--space home --task movies)"
            )
        public = "_".join(self._token.split("_")[:2])[:LONGEST_ID]  # gb_ID_SECRET
        return (
            f"the token {public}... is not known to {self.url}: it was deleted, or belongs to "
            "another server"
        )

    def space(self, name: str) -> tuple[SpaceSettings, int]:
        """Return a space and its config_version."""
        said = self._ask("GET", f"/v1/spaces/{name}")
        return SpaceSettings.from_json(said["config"]), said["config_version"]

    def create_space(self, space: SpaceSettings) -> int:
        """Make a space, which takes an admin's token; return its config_version."""
        return int(self._ask("POST", "/v1/spaces", json=space.as_json())["config_version"])

    def register(self, name: str, request: Register) -> Registered:
        """Make a stream known."""
        body = asdict(request) | {"uses": list(request.uses)}
        if request.continue_of is not None:
            stream, mark = request.continue_of
            body["continue_of"] = {"stream": stream, **mark._asdict()}
        return Registered(**self._ask("POST", f"/v1/spaces/{name}/streams", json=body))

    def upload(self, stream: str, request: Upload) -> Uploaded:
        """Hand in a cut; it is stored durably when this returns."""
        body = {
            "base": request.base._asdict(),
            "version": request.checkpoint.version,
            "round": request.checkpoint.round,
            **request.checkpoint.total.as_json(),
            "for_epoch": request.for_epoch,
            "trigger": request.trigger,
            "seen_epoch": request.seen_epoch,
            "report": asdict(request.report),
        }
        said = self._ask("PUT", f"/v1/streams/{stream}/total", json=body)
        return Uploaded(
            revision=Revision(said["n"], said["version"]),
            epoch=said["epoch"],
            open=_open(said["open"]),
            config_version=said["config_version"],
        )

    def news(
        self,
        name: str,
        stream: str | None,
        *,
        after: int,
        open_after: int,
        config_version: int,
        wait_s: float,
    ) -> News | None:
        """Return what is new, waiting for it at most so long; None: nothing is."""
        wait = min(wait_s, LONGEST_POLL_S)
        asked: dict[str, Any] = {
            "after": after,
            "open_after": open_after,
            "config_version": config_version,
            "wait": wait,
        }
        if stream is not None:
            asked["stream"] = stream
        said = self._ask("GET", f"/v1/spaces/{name}/epochs/next", params=asked, more_s=wait)
        if said is None:
            return None
        total = None
        if said["gram"] is not None:
            gram = np.array(said["gram"], np.float64)
            total = Sums(said["n"], gram, float(said["surprise"]), float(said["weight"]))
        own = said["own"]
        return News(
            epoch=said["epoch"],
            total=total,
            own=None if own is None else Revision(own["n"], own["version"]),
            round=said["round"],
            streams=said["streams"],
            agents=said["agents"],
            open=_open(said["open"]),
            config_version=said["config_version"],
            config=said["config"],
            explore_for_s=said["explore_for_s"],
            paused=said["paused"],
            excluded=said.get("excluded", 0),
        )

    def report(self, stream: str, report: Report) -> None:
        """Tell how the agent fares."""
        self._ask("POST", f"/v1/streams/{stream}/report", json=asdict(report))

    def seal(self, stream: str, mark: Revision) -> None:
        """End the stream at what is stored of it."""
        self._ask("POST", f"/v1/streams/{stream}/seal", json=mark._asdict())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _open(said: Any) -> OpenEpoch | None:
    return None if said is None else OpenEpoch(said["epoch"], said["deadline_ms"])
