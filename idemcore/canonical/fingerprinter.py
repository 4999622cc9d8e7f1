"""One request's answers to "what is your fingerprint?", by the rule of today and by older ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar, final


class Rule(Protocol):
    """What a part of a request may ask of the rule that it is fingerprinted by."""

    @property
    def tag(self) -> str:
        """What fingerprints by this rule begin with."""
        ...

    @property
    def exclude(self) -> tuple[str, ...]:
        """The JSON Pointers of what is left out."""
        ...

    def digest_json(self, body: bytes) -> bytes:
        """32 bytes for a JSON text: of its canonical form, else of its bytes."""
        ...

    def digest_raw(self, body: bytes) -> bytes:
        """32 bytes for bytes that are compared as they are."""
        ...


class Part(Protocol):
    """A part of a composed request whose digest depends on the rule."""

    def digest(self, rule: Rule, /) -> bytes:
        """What stands for this part: a digest, or bytes of any length that tell it from every other."""
        ...


@final
class JsonBody:
    """A JSON body as a part of a composed request.

    Args:
        body: the text as it came.
    """

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body: Final = body

    def digest(self, rule: Rule, /) -> bytes:
        """The digest of its canonical form, else of its bytes, by this rule."""
        return rule.digest_json(self.body)


_Rule = TypeVar("_Rule", bound=Rule)


@final
class Fingerprints(Generic[_Rule]):
    """The Fingerprinter of one request under one rule and the older ones that it accepts.

    Args:
        rule: of today.
        older: by their tags.
        compute: the fingerprint of the request by a rule.
    """

    __slots__ = ("_compute", "_known", "_older", "current")

    def __init__(self, rule: _Rule, older: Mapping[str, _Rule], compute: Callable[[_Rule], str]) -> None:
        self._older = older
        self._compute = compute
        self.current: str = compute(rule)  # now, for the caller's code may change the value afterwards
        self._known: dict[str, str] = {rule.tag: self.current}

    def under(self, tag: str) -> str | None:
        """The fingerprint by the rule with this tag, computed once; None for a rule not known here."""
        if tag not in self._known:
            rule = self._older.get(tag)
            if rule is None:
                return None
            self._known[tag] = self._compute(rule)
        return self._known[tag]
