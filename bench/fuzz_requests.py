"""Requests that no honest client sends, and some that one does: seeded, by the million.

Bodies follow the server's own document (OpenAPI), or are honest ones; then parts are replaced by
what breaks programs. Some requests are no HTTP any more: bits flip, lengths lie, lines end early.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

__all__ = ["KINDS", "Honest", "Request", "Requests"]

KINDS = ("honest", "by the document", "junk in a body", "junk in a path", "raw bytes")
WEIGHTS = (15, 25, 25, 15, 20)
JUNK: tuple[Any, ...] = (
    *(None, True, False, "", " ", "a" * 5_000, "\x00", "\ud800", "🦆", "%00", "NaN", "1e999"),
    *("../../etc/passwd", "' OR 1=1 --", 0, -1, 1, 2**31, 2**63, -(2**63), 10**400),
    *(1e308, -1e308, 5e-324, 1e-320, float("nan"), float("inf")),
    *([], {}, [[]], [None] * 50, [[1.0, 2.0]], {"": {}}, {"n": -1}),
)
HEADERS = (
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: 5\r\nContent-Length: 7",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    b"Host: " + b"h" * 9_000,
    b"X: " + b"\x00\x01\xff",
    b"Expect: 100-continue",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==",
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
    b"Content-Digest: sha-256=:AAAA:",
    b"Accept: " + b",".join([b"*/*"] * 500),
    b": no name",
    b"No colon",
)
LINES = (
    b"",
    b"\r\n\r\n",
    b"GET",
    b"GET / HTTP/9.9",
    b"GET  / HTTP/1.1",
    b"PRI * HTTP/2.0",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    b"CONNECT 127.0.0.1:1 HTTP/1.1",
    b"GET http://elsewhere.invalid/ HTTP/1.1",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
    b"\xff\xfe\xfd /v1/spaces HTTP/1.1",
    b"DELETE /%zz HTTP/1.0",
)


class Request(NamedTuple):
    """What is sent, and how."""

    kind: str
    data: bytes
    alone: bool = False  # on a connection of its own, which ends with it
    heard: Callable[[int], None] | None = None  # told the answer's status


class Requests:
    """An endless supply, from one seed.

    Parameters
    ----------
    seed
        The same seed and answers make the same requests.
    document
        The server's OpenAPI document.
    tokens
        By role; requests take turns, as each has its limits.
    space
        The settings of the space that exists.
    streams
        Streams that are registered; one half goes on with honest data.
    """

    def __init__(
        self,
        seed: int,
        document: dict[str, Any],
        tokens: dict[str, list[str]],
        space: dict[str, Any],
        streams: list[Honest],
    ) -> None:
        self.rng = random.Random(seed)
        self.document, self.tokens, self.space = document, tokens, space
        half = len(streams) // 2  # the others are for whatever comes
        self.honest, self.streams = streams[:half], streams[half:]
        self.operations = [
            (method, path, each)
            for path, methods in document["paths"].items()
            for method, each in methods.items()
        ]
        self.pools: dict[str, list[str]] = {
            "space": [space["name"]] * 6 + [f"s{k}" for k in range(20)] + ["nowhere", "..", "%00"],
            "task": [each.task for each in self.streams] + ["unknown", "a b"],
            "stream": [each.id for each in self.streams] + [str(uuid.UUID(int=9)), "x"],
            "epoch": ["0", "1", "2", "-1", "9" * 30, "one"],
            "alert": ["stale", "margin-below-zero", "no-such"],
            "id": ["0" * 16, "f" * 16, "x"],
        }

    def next(self) -> Request:
        """Return one more."""
        kind = self.rng.choices(KINDS, WEIGHTS)[0]
        if kind == "honest":
            stream = self.rng.choice(self.honest)
            body, sent = stream.upload()
            data = self._http("PUT", f"/v1/streams/{stream.id}/checkpoint", body)
            return Request(kind, _with_token(data, stream.token), heard=partial(stream.heard, sent))
        if kind == "raw bytes":
            return Request(kind, self._raw(), alone=True)
        method, path, each = self.rng.choice(self.operations)
        body = self._body(path, each)
        if kind == "junk in a body" and body is not None:
            body = self._spoilt(body)
        data = self._http(method.upper(), self._path(path, each, kind), body)
        return Request(kind, _with_token(data, self._token(path)))

    def _token(self, path: str) -> str | None:
        odd = self.rng.random()
        if odd < 0.05:
            return None
        if odd < 0.08:
            return self.rng.choice(("x", "gb_" + "0" * 16 + "_" + "a" * 43, "gb_é", " "))
        roles = ("agent",) if "{stream}" in path or path.endswith("/streams") else ("admin",)
        if self.rng.random() < 0.1:
            roles = ("viewer", "agent", "admin")
        return self.rng.choice(self.tokens[self.rng.choice(roles)])

    def _path(self, path: str, operation: dict[str, Any], kind: str) -> str:
        query: dict[str, Any] = {}
        for each in operation.get("parameters", ()):
            name = each["name"]
            if each["in"] == "path":
                value = self.rng.choice(self.pools[name])
                if kind == "junk in a path" and self.rng.random() < 0.5:
                    value = str(self.rng.choice(JUNK)).encode("utf-8", "replace").decode()[:2_000]
                path = path.replace(f"{{{name}}}", quote(value, safe=self.rng.choice(("", "/."))))
            elif self.rng.random() < 0.8:
                value = self._value(each.get("schema", {}), 0)
                if kind == "junk in a path" and self.rng.random() < 0.5:
                    value = self.rng.choice(JUNK)
                query[name] = str(value)[:500].encode("utf-8", "replace")
        # Nobody is held: a request that waits is an honest one, and there are tests of it.
        query.update({name: b"0.001" for name in ("wait", "seconds") if name in query})
        if "/events" in path or "/epochs/" in path:
            query |= {"seconds": b"0.001", "wait": b"0"}
        if kind == "junk in a path" and self.rng.random() < 0.2:
            path += self.rng.choice(("/", "//", "/../..", "%2e%2e", ";x", "%23x"))
        odd = self.rng.choice(("", "", "&a=%zz&a"))
        return f"{path}?{urlencode(query)}{odd}" if query else path

    def _body(self, path: str, operation: dict[str, Any]) -> Any:
        wanted = operation.get("requestBody")
        if wanted is None:
            return None if self.rng.random() < 0.9 else {}
        if path == "/v1/spaces" and self.rng.random() < 0.7:
            return self.space | {"name": f"s{self.rng.randrange(20)}"}
        if path == "/v1/spaces/{space}" and self.rng.random() < 0.7:
            return {"config": self.space | {"alpha": self.rng.random()}}
        if path.endswith("/streams") and self.rng.random() < 0.7:
            return self.rng.choice(self.streams).registration
        if path.endswith("/checkpoint") and self.rng.random() < 0.7:
            return self.rng.choice(self.streams).upload()[0]
        return self._value(next(iter(wanted["content"].values()))["schema"], 0)

    def _value(self, schema: dict[str, Any], depth: int) -> Any:  # noqa: PLR0911 - one per kind
        """Return something that a schema describes, more or less."""
        rng = self.rng
        if depth > 12:
            return None
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._value(self.document["components"]["schemas"][name], depth + 1)
        for many in ("anyOf", "oneOf", "allOf"):
            if many in schema:
                return self._value(rng.choice(schema[many]), depth + 1)
        if "const" in schema or "enum" in schema:
            return rng.choice(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type")
        if kind == "object":
            needed = set(schema.get("required", ()))
            return {
                name: self._value(each, depth + 1)
                for name, each in schema.get("properties", {}).items()
                if name in needed or rng.random() < 0.4
            }
        if kind == "array":
            each = schema.get("items", {})
            return [self._value(each, depth + 1) for _ in range(rng.choice((0, 1, 2, 3, 10)))]
        if kind in ("integer", "number"):
            low = schema.get("minimum", schema.get("exclusiveMinimum", -3))
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10))
            return rng.randint(int(low), int(high)) if kind == "integer" else rng.uniform(low, high)
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "string":
            return rng.choice(("movies", "home", "a", "0" * 32, str(uuid.UUID(int=7)), "é", ""))
        return rng.choice(JUNK)

    def _spoilt(self, body: Any) -> Any:
        """Return a body in which one to three parts are something else, missing or too many."""
        body = json.loads(json.dumps(body))
        for _ in range(self.rng.randint(1, 3)):
            place = body
            while isinstance(place, dict | list) and place:
                key = self.rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
                inner = place[key]
                if not isinstance(inner, dict | list) or not inner or self.rng.random() < 0.3:
                    if isinstance(place, dict) and self.rng.random() < 0.2:
                        del place[key]
                        place[str(self.rng.choice(JUNK))[:50]] = inner
                    else:
                        place[key] = deepcopy(self.rng.choice(JUNK))
                    break
                place = inner
        return body if self.rng.random() < 0.95 else self.rng.choice(JUNK)

    def _http(self, method: str, path: str, body: Any) -> bytes:
        content = b""
        if body is not None:
            content = json.dumps(body).encode("utf-8", "surrogatepass")
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        return head.encode("latin-1", "replace") + b"\r\n" + content

    def _raw(self) -> bytes:  # noqa: PLR0911 - one per way
        """Return bytes that are hardly a request."""
        rng = self.rng
        method, path, each = rng.choice(self.operations)
        whole = self._http(method.upper(), self._path(path, each, ""), self._body(path, each))
        whole = _with_token(whole, self._token(path))
        way = rng.randrange(7)
        if way == 0:
            return rng.randbytes(rng.choice((1, 10, 100, 3_000)))
        if way == 1:
            return rng.choice(LINES) + rng.choice((b"", b"\r\n", b"\r\n\r\n"))
        if way == 2:  # cut off
            return whole[: rng.randrange(len(whole))]
        if way == 3:  # bits flip
            spoilt = bytearray(whole)
            for _ in range(rng.randint(1, 20)):
                spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
            return bytes(spoilt)
        if way == 4:  # headers that lie
            line, _, rest = whole.partition(b"\r\n")
            return line + b"\r\n" + rng.choice(HEADERS) + b"\r\n" + rest
        if way == 5:  # several at once, and a piece
            return whole * rng.randint(2, 4) + whole[: rng.randrange(len(whole))]
        return whole.replace(b"\r\n", rng.choice((b"\n", b"\r", b"\r\n ", b"\x00\r\n")))


class Honest:
    """A stream with data that may be: what is uploaded follows from what was stored.

    Parameters
    ----------
    ident, task, token
        The stream, its task, and the task's token.
    schema_hash
        Of the space, which has three features.
    """

    def __init__(self, ident: str, task: str, token: str, schema_hash: str) -> None:
        self.id, self.task, self.token = ident, task, token
        self.registration = {
            "stream": ident,
            "task": task,
            "uses": [0, 1, 2],
            "library": "0.1.0",
            "schema_hash": schema_hash,
        }
        self.base: dict[str, Any] = {"n": 0, "version": ""}

    def upload(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an upload of one more observation, x = (.5, .5, .5), reward .5, and its name."""
        n = self.base["n"] + 1
        sent = {"n": n, "version": f"{n:032x}"}
        sums = {"n": n, "gram": [0.25 * n] * 10, "surprise": 0.0, "weight": float(n)}
        return {"base": self.base, "checkpoint": {"version": sent["version"], "sums": sums}}, sent

    def heard(self, sent: dict[str, Any], status: int) -> None:
        """Go on from what is stored by now."""
        if status == 200:
            self.base = sent


def _with_token(data: bytes, token: str | None) -> bytes:
    if token is None:
        return data
    line, _, rest = data.partition(b"\r\n")
    return line + b"\r\nAuthorization: Bearer " + token.encode() + b"\r\n" + rest
