"""A coordinator at the other end of an HTTP connection."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from guardband.errors import InvalidValueError
from guardband.files import in_words
from guardband.live.link.base import Unreachable
from guardband.live.protocol.digests import HEADER, digest_of, matches
from guardband.live.protocol.messages import (
    Alarmed,
    AlarmKept,
    LookedAtRecord,
    News,
    Refused,
    Register,
    Registered,
    Report,
    Revision,
    SpaceInfo,
    SpaceSaved,
    Upload,
    Uploaded,
)
from guardband.live.protocol.space import SpaceSettings

__all__ = ["HttpLink"]

CONNECT_S = 5.0
ANSWER_S = 15.0
BYTES_A_SECOND = 100_000  # that a busy coordinator reads, checks, adds up and writes, at least
LONG_S = 60.0  # more, for what is large
LONGEST_POLL_S = 25.0
LONGEST_ID = 20  # of a token, in messages; the secret is never shown
JSON = {"Content-Type": "application/json"}
Answer = TypeVar("Answer", bound=BaseModel)
NOT_NOW = (408, 425, 429)  # and everything from 500 on
NO_TLS = "it does not speak TLS; its address may begin with http://."
DAMAGED = "damaged_body"  # on its way: the same again will do


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
        if not _is_address(url):
            raise InvalidValueError(
                f"{url!r} is no address of a coordinator, such as 'http://127.0.0.1:8710'."
            )
        self.url, self._token, self._transport = url.rstrip("/"), token, transport
        self._largest = 0  # bytes of a message, of either side: sums of one space are of one size
        self.after_fork()

    def hold(self) -> None:
        """Do nothing: there is no file to close."""

    def let_go(self) -> None:
        """Do nothing: there is no file to open."""

    def after_fork(self) -> None:
        """Open new connections in this process."""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            transport=self._transport,
        )

    def _ask(
        self,
        method: str,
        path: str,
        message: BaseModel | None = None,
        *,
        more_s: float = 0.0,
        **given: Any,
    ) -> bytes | None:
        """Send a message; return the answer's JSON, None where there is none."""
        if message is not None:
            text = message.model_dump_json()
            given |= {"content": text, "headers": {**JSON, HEADER: digest_of(text.encode())}}
            self._largest = max(self._largest, len(text))
        try:
            timeout = httpx.Timeout(self._patience(more_s), connect=CONNECT_S)
            answer = self._http.request(method, path, timeout=timeout, **given)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
            # RuntimeError: the client was closed while another thread was about to use it.
            told = NO_TLS if "WRONG_VERSION_NUMBER" in str(error) else f"{in_words(error)}."
            raise Unreachable(f"{self.url} does not answer: {told}") from error
        self._largest = max(self._largest, len(answer.content))
        if not matches(answer.headers.get(HEADER), answer.content):
            raise Unreachable(f"an answer of {self.url} was damaged on its way: asking again.")
        if answer.is_success:
            return None if answer.status_code == httpx.codes.NO_CONTENT else answer.content
        raise self._problem(answer)

    def _patience(self, more_s: float) -> float:
        """Return for how many seconds an answer is waited for: longer where messages are large."""
        return ANSWER_S + self._largest / BYTES_A_SECOND + more_s

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the HTTP API for something that has no method here; return the answer's JSON."""
        content = self._ask(method, path, json=body)
        return None if content is None else json.loads(content)

    def _problem(self, answer: httpx.Response) -> Exception:
        """Return what an answer that is not a success means."""
        try:
            known = answer.json()
        except ValueError:
            return self._not_a_coordinator(answer.status_code)
        known = dict(known) if isinstance(known, dict) else {}
        code, detail = str(known.pop("code", "error")), str(known.get("detail", ""))
        if answer.status_code in NOT_NOW or answer.status_code >= 500 or code == DAMAGED:
            wait = float(known.get("retry_after_s", 0.0))
            return Unreachable(f"{self.url} answers {answer.status_code}: {detail}", wait)
        more = {k: v for k, v in known.items() if k not in ("type", "title", "status", "detail")}
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            detail = self._token_advice()
        elif code == "not_found":
            detail = f"{self.url} has no such page: give the coordinator's address without a path."
        return Refused(code, answer.status_code, detail, **more)

    def _read(self, kind: type[Answer], content: bytes | None) -> Answer:
        """Return the message in an answer."""
        try:
            return kind.model_validate_json(content or b"")
        except ValidationError:
            raise self._not_a_coordinator(200) from None

    def _not_a_coordinator(self, status: int) -> Unreachable:
        return Unreachable(
            f"{self.url} answers {status}, but not as a coordinator does: is it a coordinator?"
        )

    def _token_advice(self) -> str:
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
        said = self._read(SpaceInfo, self._ask("GET", f"/v1/spaces/{name}"))
        return said.config, said.config_version

    def create_space(self, space: SpaceSettings) -> int:
        """Make a space, which takes an admin's token; return its config_version."""
        return self._read(SpaceSaved, self._ask("POST", "/v1/spaces", space)).config_version

    def looked_at(self, name: str) -> bytes:
        """Return a space's record of rows of logs that were looked at."""
        said = self._ask("GET", f"/v1/spaces/{name}/looked-at", more_s=LONG_S)
        return b64decode(self._read(LookedAtRecord, said).record)

    def register(self, name: str, request: Register) -> Registered:
        """Make a stream known."""
        return self._read(Registered, self._ask("POST", f"/v1/spaces/{name}/streams", request))

    def upload(self, stream: str, request: Upload) -> Uploaded:
        """Hand in a checkpoint; it is stored durably when this returns."""
        path = f"/v1/streams/{stream}/checkpoint"
        return self._read(Uploaded, self._ask("PUT", path, request))

    def news(
        self,
        name: str,
        stream: str | None,
        *,
        after: int,
        open_after: int,
        config_version: int,
        wait_s: float,
        compares: bool = False,
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
        if compares:
            asked["compares"] = True
        said = self._ask("GET", f"/v1/spaces/{name}/epochs/next", params=asked, more_s=wait)
        return None if said is None else self._read(News, said)

    def report(self, stream: str, report: Report) -> None:
        """Send the agent's report."""
        self._ask("POST", f"/v1/streams/{stream}/report", report)

    def alarm(self, stream: str, alarm: Alarmed) -> AlarmKept:
        """Tell what the agent's monitors noticed; hear whether a person has looked at it."""
        return self._read(AlarmKept, self._ask("POST", f"/v1/streams/{stream}/alarm", alarm))

    def seal(self, stream: str, revision: Revision) -> None:
        """End the stream at what is stored of it."""
        self._ask("POST", f"/v1/streams/{stream}/seal", json=revision._asdict())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port that is none
        return False
