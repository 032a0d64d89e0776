"""Request bodies of operators: settings of a space, reasons, tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.types import Message, Name, Text, Whole

__all__ = ["AgentTokenBody", "ConfigureBody", "ReasonBody", "TokenBody"]

Note = Annotated[Text, Field(max_length=200)]


class ConfigureBody(Message):
    """All settings of a space, for those that were read with its `config_version`."""

    config: SpaceSettings
    config_version: Annotated[
        Whole | None,
        Field(description="as it was read: refused (409) if it has changed since"),
    ] = None


class ReasonBody(Message):
    """Why an operator does something; it is written to the events."""

    reason: Text = ""


class AcknowledgeBody(ReasonBody):
    """Which alert somebody has seen."""

    task: Annotated[Name | None, Field(description="the task that the alert names, if any")] = None


class AgentTokenBody(Message):
    """A token of an agent, which is bound to a space and a task."""

    role: Literal["agent"]
    space: Name
    task: Name
    note: Note = ""


class PersonTokenBody(Message):
    """A token of a person or a tool, for one space or for all."""

    role: Literal["admin", "viewer"]
    space: Name | None = None
    note: Note = ""


def _whose(body: Any) -> str:
    return "agent" if isinstance(body, dict) and body.get("role") == "agent" else "person"


TokenBody = Annotated[
    Annotated[AgentTokenBody, Tag("agent")] | Annotated[PersonTokenBody, Tag("person")],
    Discriminator(_whose),
]
