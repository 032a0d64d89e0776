"""Requests by the thousand, made from an OpenAPI document, and what every answer must be."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("GUARDBAND_FUZZ_EXAMPLES", "300"))
Feed = Callable[[Any, Callable[..., Any], str | None], None]


def operations_of(document: dict[str, Any]) -> list[tuple[str, str]]:
    """All (method, path) of a document."""
    return [(method, path) for path, each in document["paths"].items() for method in each]


def fuzz(
    document: dict[str, Any],
    method: str,
    path: str,
    url: str,
    *,
    tokens: Sequence[str | None] = (None,),
    feed: Feed,
) -> Counter[int]:
    """Send requests that fit one operation and such that do not; return how often it said what.

    Of every answer it is checked that it is no 500 and that its status, content type, headers and
    body are in the document. `feed(case, draw, token)` may put things that exist into a request, so
    that more than 404 comes back.
    """
    import requests  # noqa: PLC0415 - these come with the full installation only
    from schemathesis import GenerationMode, openapi  # noqa: PLC0415
    from schemathesis.checks import not_a_server_error  # noqa: PLC0415
    from schemathesis.specs.openapi import checks as conform  # noqa: PLC0415

    operation = openapi.from_dict(document)[path][method.upper()]
    checks = [
        not_a_server_error,
        conform.status_code_conformance,
        conform.content_type_conformance,
        conform.response_headers_conformance,
        conform.response_schema_conformance,
    ]
    asked = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if operation.body or any(operation.query) or any(operation.path_parameters):
        asked |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    said: Counter[int] = Counter()

    with requests.Session() as session:

        @seed(zlib.crc32(f"{method} {path}".encode()))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def ask(data: Any) -> None:
            case = data.draw(asked)
            token = data.draw(st.sampled_from(tokens))
            feed(case, data.draw, token)
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            answer = case.call(base_url=url, session=session, headers=headers, timeout=60)
            said[answer.status_code] += 1
            case.validate_response(answer, checks=checks)

        ask()
    return said
