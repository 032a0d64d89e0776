"""Types of the fields of messages and settings: exact, bounded, and documented by OpenAPI.

Under a strict model "1" is not a number, and neither is true; NaN and infinity are refused. JSON
has one kind of number, so 3.0 is taken for 3.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema
from pydantic_core import core_schema

from guardband.kernels.types import Floats

__all__ = [
    "CLOSED",
    "LARGEST_DIM",
    "LARGEST_WHOLE",
    "NAME",
    "TINY",
    "UNIQUE",
    "WHOLE",
    "Count",
    "Counters",
    "Digest",
    "FeatureName",
    "Fraction",
    "Indices",
    "Message",
    "Modest",
    "Name",
    "NotNegative",
    "Numbers",
    "Positive",
    "Reals",
    "ReasonCode",
    "Reply",
    "Seconds",
    "Share",
    "StreamId",
    "Text",
    "Triangle",
    "Version",
    "Whole",
    "as_object",
    "packed_size",
]

Tuple = TypeVar("Tuple", bound=type[Any])
LARGEST_WHOLE = 2**53  # whole numbers up to here are exact in float64
TINY = 1e-100  # squares of positive numbers must be positive, too
LARGEST_DIM = 1024  # a stream's sums must fit into one message


def packed_size(dim: int) -> int:
    """Return how many numbers the upper triangle of a (d + 1, d + 1) matrix has."""
    return (dim + 1) * (dim + 2) // 2


def _as_whole(value: Any) -> Any:
    """Return 3 for 3.0 and for NumPy's 3, and everything else as it is."""
    if type(value) is float:
        exact = value.is_integer() and abs(value) <= LARGEST_WHOLE
        return int(value) if exact else value
    return operator.index(value) if isinstance(value, np.integer) else value


WHOLE = BeforeValidator(_as_whole)  # comes last, or the bounds before it are not documented
UNIQUE = {"uniqueItems": True}
CLOSED = {"additionalProperties": False}  # keys that do not fit are refused; OpenAPI says so

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME, min_length=1, max_length=64)]
StreamId = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        min_length=36,
        max_length=36,
    ),
]
Version = Annotated[str, Field(pattern=r"^([0-9a-f]{32})?$", max_length=32)]
Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$", min_length=1, max_length=40)]
# No control characters: they have no place in a name, and PostgreSQL refuses U+0000.
Text = Annotated[str, Field(pattern=r"^[^\u0000-\u001f\u007f]*$", max_length=500)]
FeatureName = Annotated[
    str, Field(pattern=r"^[^\u0000-\u001f\u007f]+$", min_length=1, max_length=64)
]
ReasonCode = Annotated[  # one of guardband.reasons, or several joined by a plus sign
    str, Field(pattern=r"^([a-z-]+(\+[a-z-]+)*)?$", max_length=80)
]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", min_length=64, max_length=64)]
Whole = Annotated[int, Field(ge=0, le=LARGEST_WHOLE), WHOLE]
Count = Annotated[int, Field(ge=1, le=LARGEST_WHOLE), WHOLE]
Index = Annotated[int, Field(ge=0, lt=LARGEST_DIM), WHOLE]
# Tuples are not strict: a list that was read from JSON is one, too.
Indices = Annotated[tuple[Index, ...], Field(strict=False, max_length=LARGEST_DIM)]
Numbers = Annotated[tuple[float, ...], Field(strict=False, max_length=LARGEST_DIM)]
Positive = Annotated[float, Field(gt=TINY, lt=1e100)]
NotNegative = Annotated[float, Field(ge=0, lt=1e100)]
Modest = Annotated[float, Field(gt=-1e100, lt=1e100)]  # its square is a number, too
Seconds = Annotated[float, Field(gt=TINY, le=1e9)]
Share = Annotated[float, Field(gt=0, le=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Counters = Annotated[dict[Key, Whole], Field(max_length=64, json_schema_extra=CLOSED)]
Reals = Annotated[dict[Key, float], Field(max_length=64, json_schema_extra=CLOSED)]


def _triangle_schema(_: Any, handler: Any) -> core_schema.CoreSchema:
    numbers = Annotated[list[float], Field(min_length=3, max_length=packed_size(LARGEST_DIM))]
    return core_schema.no_info_after_validator_function(
        lambda found: np.array(found, np.float64),
        handler(numbers),
        serialization=core_schema.plain_serializer_function_ser_schema(
            np.ndarray.tolist, return_schema=handler(list[float])
        ),
    )


# A list of numbers in JSON, an array in Python.
Triangle = Annotated[Floats, GetPydanticSchema(_triangle_schema)]


class Message(BaseModel):
    """What is sent to a coordinator: exact types, bounded lengths, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Reply(BaseModel):
    """What a coordinator answers; fields that a newer one adds are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


def as_object(kind: Tuple) -> Tuple:
    """Let a NamedTuple be an object in JSON, and itself, not checked again, in Python."""

    def schema(_: Any, handler: Any) -> core_schema.CoreSchema:
        hints = get_type_hints(kind, include_extras=True)
        fields = core_schema.typed_dict_schema(
            {
                name: core_schema.typed_dict_field(
                    handler.generate_schema(hints[name]),
                    required=name not in kind._field_defaults,
                )
                for name in kind._fields
            },
            extra_behavior="forbid",
            config=core_schema.CoreConfig(strict=True, allow_inf_nan=False),
        )
        return core_schema.no_info_wrap_validator_function(
            lambda given, read: given if isinstance(given, kind) else kind(**read(given)),
            fields,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda given: given._asdict(), return_schema=fields
            ),
        )

    kind.__get_pydantic_core_schema__ = schema
    return kind
