"""What the expressions of the golden file may use. Change nothing here: add."""

from __future__ import annotations

import enum
import ipaddress
import uuid
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel, Secret, SecretBytes, SecretStr

from idemcore.canonical import NOT_FINGERPRINTED

UUID = uuid.UUID
ip = ipaddress.ip_address
network = ipaddress.ip_network


class Colour(enum.Enum):
    RED = "red"
    TWO = (2, "two")


class Level(enum.IntEnum):
    LOW = 1


class Bits(enum.Flag):
    A = 1
    B = 2


class Text(str):
    pass


@dataclass
class Line:
    sku: str
    amount: Decimal = Decimal("1")


@dataclass
class Gift(Line):
    note: str = ""
    tags: frozenset[str] = field(default_factory=frozenset)
    sent_at: Annotated[float, NOT_FINGERPRINTED] = 0.0


class Party(BaseModel):
    name: str


class Company(Party):
    number: int


class Order(BaseModel):
    trace: uuid.UUID = Field(default_factory=uuid.uuid4)
    lines: list[Decimal] = []
    party: Party | None = None
    day: date | None = None
    colour: Colour = Colour.RED
    hidden: int = Field(default=0, exclude=True)
    sent_at: Annotated[datetime | None, NOT_FINGERPRINTED] = None


class Login(BaseModel):
    user: str
    password: SecretStr


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Refund(BaseModel):
    type: Literal["refund"] = "refund"
    amount: Decimal
    currency: Literal["EUR", "USD"] = "EUR"
    by: Literal[Colour.RED] = Colour.RED
    note: Literal["late"] | None = None


class Numbers(RootModel[list[float]]):
    pass


__all__ = [
    "UTC", "UUID", "AnyUrl", "Bits", "Colour", "Company", "Decimal", "Gift", "Level", "Line", "Login",
    "Numbers", "Open", "Order", "Party", "Refund", "Secret", "SecretBytes", "SecretStr", "Text", "ZoneInfo",
    "date", "datetime", "deque", "ip", "network", "time", "timedelta", "timezone",
]  # fmt: skip
