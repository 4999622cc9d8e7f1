"""Bodies of real shape for the canonicalization benchmark; the same ones on every run."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

from pydantic import BaseModel


class Line(BaseModel):
    sku: str
    name: str
    quantity: int
    unit_price: Decimal
    tax_rate: float
    gift: bool


class Customer(BaseModel):
    id: int
    name: str
    email: str


class Address(BaseModel):
    street: str
    city: str
    zip: str
    country: str


class Order(BaseModel):
    order_id: str
    customer: Customer
    currency: str
    lines: list[Line]
    shipping: Address
    note: str | None
    total: Decimal


PAYMENT = (
    b'{"amount":1999,"currency":"EUR","source":"tok_visa_4242","customer":"cus_9s6XKzkNRiz8i3",'
    b'"capture":true,"order":"A-20931"}'
)


def payloads() -> dict[str, bytes]:
    """JSON bodies by name, from small to large."""
    source = random.Random(8785)
    return {
        "120 B payment": PAYMENT,
        "1 kB order": encoded(order(source, 6)),
        "10 kB order": encoded(order(source, 78)),
        "1 MB catalogue": encoded(catalogue(source, 3600)),
        "GeoJSON": encoded(geojson(source, 50)),
        "non-ASCII text": encoded(texts(40)),
        "nested 500 deep": b'{"a":' * 499 + b"[1]" + b"}" * 499,
    }


def orders() -> dict[str, dict[str, Any]]:
    """Values of an Order, small and large."""
    source = random.Random(8785)
    return {"1 kB order": order(source, 6), "10 kB order": order(source, 78)}


def encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def price(source: random.Random) -> float:
    """Price tags end in .99, .95, .50 or .00."""
    return source.randrange(1, 300) + source.choice([0.99, 0.95, 0.5, 0.0])


def line(source: random.Random) -> dict[str, Any]:
    return {
        "sku": f"SKU-{source.randrange(10**6):06}",
        "name": source.choice(["Blue mug", "Tea, 100 g", "Lamp „Nord“", "Notebook A5"]),
        "quantity": source.randrange(1, 9),
        "unit_price": price(source),
        "tax_rate": source.choice([0.19, 0.07]),
        "gift": source.random() < 0.2,
    }


def order(source: random.Random, lines: int) -> dict[str, Any]:
    return {
        "order_id": f"A-{source.randrange(10**8)}",
        "customer": {"id": source.randrange(10**7), "name": "Jana Nováková", "email": "jana@example.org"},
        "currency": "EUR",
        "lines": [line(source) for _ in range(lines)],
        "shipping": {"street": "Hlavní 12", "city": "Praha", "zip": "11000", "country": "CZ"},
        "note": None,
        "total": round(source.uniform(10, 5000), 2),
    }


def catalogue(source: random.Random, products: int) -> dict[str, Any]:
    text = "Lorem ipsum dolor sit amet, consetetur. " * 2
    return {
        "products": [
            {
                **line(source),
                "id": source.randrange(10**9),
                "description": text,
                "tags": ["kitchen", "new"],
                "weight": round(source.uniform(0.1, 9), 3),
            }
            for _ in range(products)
        ]
    }


def geojson(source: random.Random, features: int) -> dict[str, Any]:
    """Every coordinate is another number of 15 to 17 digits: no memory helps here."""

    def polygon() -> list[list[float]]:
        return [[source.uniform(-180, 180), source.uniform(-90, 90)] for _ in range(50)]

    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": f"parcel {number}"},
                "geometry": {"type": "Polygon", "coordinates": [polygon()]},
            }
            for number in range(features)
        ],
    }


def texts(count: int) -> list[dict[str, Any]]:
    text = "Příliš žluťoučký kůň úpěl ďábelské ódy 日本語テキスト 😀 " * 3
    return [{"id": number, "text": text} for number in range(count)]
