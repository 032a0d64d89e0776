"""Messages that were damaged on their way: neither side uses them, and the agent asks again."""

from __future__ import annotations

import json

import httpx
import pytest
from live.server.driver import Served

from guardband.live import Unreachable
from guardband.live.link import HttpLink
from guardband.live.protocol.digests import HEADER, digest_of, matches


def test_the_header_is_that_of_the_standard() -> None:
    """The example of RFC 9530, appendix B.1, and what is no sha-256."""
    body = b'{"hello": "world"}\n'
    header = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
    assert digest_of(body) == header
    assert matches(header, body)
    assert matches(f"sha-512=:AAAA:, {header}", body)
    assert not matches(header, body.replace(b"w", b"W"))
    assert matches(None, body)
    assert matches("md5=:AAAA:", body)
    assert not matches("sha-256=::", body)


def test_a_damaged_request_is_refused_and_changes_nothing(server: Served) -> None:
    one = server.agent("movies")
    assert one.register().status_code == 201
    one.upload()
    with server.admin() as admin:
        body = json.dumps({"reason": "maintenance"}).encode()
        headers = {"Content-Type": "application/json", HEADER: digest_of(body)}
        path = "/v1/spaces/home/pause"
        damaged = admin.post(path, content=body.replace(b"main", b"mAin"), headers=headers)
        assert (damaged.status_code, damaged.json()["code"]) == (400, "damaged_body")
        assert admin.get("/v1/spaces/home").json()["paused"] is None
        assert admin.post(path, content=body, headers=headers).is_success
        assert admin.get("/v1/spaces/home").json()["paused"] == "maintenance"


@pytest.mark.parametrize("path", ["/v1/spaces/home", "/v1/spaces/none", "/v1/spaces/home/summary"])
def test_every_answer_in_json_has_its_digest(server: Served, path: str) -> None:
    with server.admin() as admin:
        answer = admin.get(path)
        assert answer.headers[HEADER] == digest_of(answer.content)


class Damaging(httpx.HTTPTransport):
    """Flips a bit in every answer, or in every request, until it is told not to."""

    answers = requests = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.requests and request.content:
            content = _flipped(request.content)
            request = httpx.Request(
                request.method, request.url, headers=request.headers, content=content
            )
        response = super().handle_request(request)
        if self.answers:
            body = _flipped(response.read())
            return httpx.Response(response.status_code, headers=response.headers, content=body)
        return response


def _flipped(body: bytes) -> bytes:
    at = len(body) // 2
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def test_an_agent_uses_no_damaged_answer(server: Served) -> None:
    wire = Damaging()
    link = HttpLink(server.url, server.admin_token, transport=wire)
    settings, _ = link.space("home")
    wire.answers = True
    with pytest.raises(Unreachable, match="damaged on its way"):
        link.space("home")
    wire.answers, wire.requests = False, True
    with pytest.raises(Unreachable, match="damaged; send it again"):
        link.create_space(settings.changed(name="other"))
    wire.requests = False
    assert link.create_space(settings.changed(name="other")) == 1
    link.close()
