"""What an agent is told whose token is missing or wrong."""

from __future__ import annotations

import httpx
import pytest

from guardband.live.link import Unreachable
from guardband.live.link.http import HttpLink
from guardband.live.protocol.messages import Refused


def refused(token: str | None) -> Refused:
    body = {"status": 401, "code": "unauthorized", "detail": "no such token."}
    transport = httpx.MockTransport(lambda _: httpx.Response(401, json=body))
    with pytest.raises(Refused) as no:
        HttpLink("http://gb.example:8710", token, transport=transport).space("home")
    assert (no.value.code, no.value.status) == ("unauthorized", 401)
    return no.value


def test_without_a_token_it_says_where_to_get_one() -> None:
    told = str(refused(None))
    assert told.startswith("no token: pass token=... or set GUARDBAND_AGENT_TOKEN")
    assert "guardband token create --space home --task movies" in told


@pytest.mark.parametrize("token", ["gb_1f0c_SECRET", "SECRETSECRETSECRETSECRET"])
def test_a_wrong_token_is_named_without_its_secret(token: str) -> None:
    told = str(refused(token))
    assert "is not known to http://gb.example:8710: it was deleted, or belongs to another" in told
    assert token not in told
    assert ("gb_1f0c..." in told) == token.startswith("gb_")


def test_an_address_with_a_path_is_named() -> None:
    body = {"status": 404, "code": "not_found", "detail": "It does not exist."}
    transport = httpx.MockTransport(lambda _: httpx.Response(404, json=body))
    with pytest.raises(Refused, match=r"8710/v1 has no such page: give the coordinator's address"):
        HttpLink("http://gb.example:8710/v1", transport=transport).space("home")


def test_who_asks_for_tls_where_there_is_none_is_told() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")

    with pytest.raises(Unreachable, match="does not speak TLS; its address may begin with http:"):
        HttpLink("https://gb.example", transport=httpx.MockTransport(answer)).space("home")
