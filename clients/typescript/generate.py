"""Write guardband.ts: the sidecar's messages as types, and a class with a method per operation.

    python clients/typescript/generate.py

The tests fail where the file is not what this writes: the client cannot fall behind the API.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from guardband.live.sidecar import make_sidecar

TARGET = Path(__file__).with_name("guardband.ts")
PLAIN = {each: each for each in ("number", "string", "boolean", "null")} | {"integer": "number"}
HEAD = """\
// A client of the guardband sidecar, for Node and other places with fetch.
// Written by clients/typescript/generate.py from the sidecar's OpenAPI document: do not edit.
"""
CLIENT = """
/** An answer that says why a request failed; `code` is stable. */
export class Refused extends Error {
  readonly problem: ProblemDetails;
  /** After how many seconds to try again; undefined: the same request fails again. */
  readonly retryAfterS: number | undefined;

  constructor(problem: ProblemDetails, retryAfterS?: number) {
    super(`${problem.code} (${problem.status}): ${problem.detail}`);
    this.name = "Refused";
    this.problem = problem;
    this.retryAfterS = retryAfterS;
  }
}

export interface Options {
  /** Where the sidecar listens; http://127.0.0.1:8711 unless given. */
  url?: string;
  /** What is in sidecar.token of its state folder. */
  token?: string;
  /** How long to wait for an answer, in milliseconds; 10 seconds unless given. */
  timeoutMs?: number;
}

/** One task's agent: ask it what to play, tell it the reward. */
export class Sidecar {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;

  constructor({ url = "http://127.0.0.1:8711", token, timeoutMs = 10_000 }: Options = {}) {
    this.#url = url.replace(/\\/+$/, "");
    this.#headers = { "Content-Type": "application/json" };
    if (token !== undefined) this.#headers["Authorization"] = `Bearer ${token.trim()}`;
    this.#timeoutMs = timeoutMs;
  }
METHODS
  async #ask<Reply>(method: string, path: string, body?: unknown): Promise<Reply> {
    const answer = await fetch(this.#url + path, {
      method,
      headers: this.#headers,
      signal: AbortSignal.timeout(this.#timeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.ok) return (await answer.json()) as Reply;
    const wait = answer.headers.get("Retry-After");
    const problem = (await answer.json()) as ProblemDetails;
    throw new Refused(problem, wait === null ? undefined : Number(wait));
  }
}
"""


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema as a type of TypeScript."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(type_of(each) for each in schema[several]))
    if schema.get("type") == "array":
        inner = type_of(schema["items"])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if schema.get("type") == "object":
        values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
        inner = type_of(values[0]) if isinstance(values[0], dict) else "unknown"
        return f"Record<string, {inner}>"
    return PLAIN.get(str(schema.get("type")), "unknown")


def comment(text: str | None, indent: str) -> list[str]:
    """Return a description as a comment."""
    return [f"{indent}/** {' '.join(text.split())} */"] if text else []


def interface(name: str, schema: dict[str, Any]) -> list[str]:
    """Return a message as an interface."""
    lines = ["", *comment(schema.get("description"), ""), f"export interface {name} {{"]
    for field, about in schema["properties"].items():
        optional = "" if field in schema.get("required", ()) else "?"
        lines += [
            *comment(about.get("description"), "  "),
            f"  {field}{optional}: {type_of(about)};",
        ]
    return [*lines, "}"]


def content(holder: dict[str, Any]) -> str:
    """Return the type of a body."""
    return type_of(holder["content"]["application/json"]["schema"])


def method(path: str, verb: str, operation: dict[str, Any]) -> list[str]:
    """Return an operation as a method, named by the end of its path."""
    name, asked = path.rpartition("/")[2], operation.get("requestBody")
    given = f"body: {content(asked)}" if asked else ""
    reply = content(operation["responses"]["200"])
    sent = ", body" if asked else ""
    return [
        "",
        *comment(operation.get("description"), "  "),
        f"  {name}({given}): Promise<{reply}> {{",
        f'    return this.#ask("{verb.upper()}", "{path}"{sent});',
        "  }",
    ]


def client(document: dict[str, Any]) -> str:
    """Return the whole file."""
    types = [
        line
        for name, schema in sorted(document["components"]["schemas"].items())
        for line in interface(name, schema)
    ]
    methods = [
        line
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
        for line in method(path, verb, operation)
    ]
    return (
        HEAD + "\n".join(types) + "\n" + CLIENT.replace("METHODS\n", "\n".join([*methods, "", ""]))
    )


def document() -> dict[str, Any]:
    """Return the sidecar's OpenAPI document; nothing is asked of its agent."""
    return make_sidecar(cast(Any, None), token=None).openapi()


if __name__ == "__main__":
    TARGET.write_text(client(document()))
    print(TARGET)
