"""Values that JSON does not have become ones that it has, one level at a time, by what they are at run time.

Never ``repr()``, never ``id()``, never a guess: a type that is not named here is refused, and so is an object
that holds more than what is written of it. Text-like values (UUID, dates, addresses) become their text. What
must not be mistaken for text (bytes, secrets) becomes a tagged form that is no JSON at all, so no document can
imitate it.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from .attributes import beside
from .models import is_address, is_model, is_secret, reading_of_dataclass, reading_of_model
from .number import NumberRules, Refused, Verbatim

Step = Callable[[Any], object]

_NATIVE = frozenset({dict, list, tuple, set, frozenset, str, int, float, bool, type(None), Verbatim})
_MAX_TYPES = 1024
_MAX_STEPS = 512  # an Enum whose value is an Enum, a root model of a root model: it must end
_MAX_LITERALS = 8192
_MAX_REMEMBERED = 16  # characters
_LATER = " fold=1"
# What gives all values of a name: of Werkzeug and Starlette, multidict, Django, httpx.
_OF_ALL_VALUES = ("getlist", "getall", "lists", "multi_items")
_FOUR_CENTURIES = timedelta(days=146_097)  # after which the Gregorian calendar repeats


class Reducer:
    """Turns one value into what the writer knows.

    Args:
        rules: how numbers are printed.
        secret: digest of a secret's content, as text that is no JSON.

    Attributes:
        steps: what is done first with values of each type that was met; emptied when full.
    """

    def __init__(self, rules: NumberRules, secret: Callable[[object], str]) -> None:
        self._rules = rules
        self._secret = secret
        self._plain: Final = (*_PLAIN, (Decimal, self._decimal))
        self.steps: Final[dict[type, Step]] = {Decimal: _Decimals(self._decimal).__getitem__}

    def __call__(self, value: Any) -> object:
        """A dict, list, tuple, set, frozenset, str, int, float, bool, None or Verbatim of exactly that type.

        Raises:
            Refused: for a type that has no canonical form, or a value that cannot be read.
        """
        kind = type(value)
        try:
            for _ in range(_MAX_STEPS):
                if kind in _NATIVE:
                    return value
                value = (self.steps.get(kind) or self._learned(value))(value)
                kind = type(value)
        except (Refused, RecursionError, MemoryError):
            raise
        except Exception as error:  # a property or a tzinfo of the caller's own that raises
            if kind is Decimal:
                self._decimal(value)  # a signalling NaN, which has no hash: refused in its own words
            raise Refused(f"{kind.__name__} cannot be read: {type(error).__name__}") from error
        raise Refused(f"{kind.__name__} stands for itself")

    def _learned(self, value: object) -> Step:
        """The step for values of this type, remembered."""
        step = self._step(value)
        if len(self.steps) >= _MAX_TYPES:
            self.steps.clear()  # Decimal too, which then goes without its memory
        self.steps[type(value)] = step
        return step

    def _step(self, value: object) -> Step:
        # Enum first, whose members may be str or int as well; the plain types last.
        kind = type(value)
        if isinstance(value, enum.Enum):
            return _enum_value
        found = next(((base, step) for base, step in self._plain if isinstance(value, base)), None)
        if found is not None and (is_model(value) or dataclasses.is_dataclass(kind)):
            raise Refused(
                f"{kind.__name__} has fields and is a {found[0].__name__} as well: make that a field of its own"
            )
        if is_model(value):
            return reading_of_model(kind)
        if is_secret(value):
            return self._secret_token
        if dataclasses.is_dataclass(kind):
            return reading_of_dataclass(kind)
        if any(callable(getattr(kind, name, None)) for name in _OF_ALL_VALUES) and isinstance(value, Mapping):
            raise Refused(
                f"{kind.__name__} may hold several values for a name, of which its items() are the first: "
                "exclude it, or pass all of them in a plain dict, such as request.form.to_dict(flat=False)"
            )
        if found is not None:
            return _whole(kind, *found)
        if isinstance(value, Mapping):
            return _dict_of
        if is_address(value):
            return str
        raise Refused(f"{kind.__name__} has no canonical form")

    def _secret_token(self, secret: Any) -> Verbatim:
        return Verbatim(self._secret(secret.get_secret_value()))

    def _decimal(self, value: Decimal) -> Verbatim:
        if not value.is_finite():
            raise Refused(f"{value} is not a number that JSON has")
        # A zero may carry any exponent.
        return Verbatim(self._rules.literal(Decimal.__str__(value)) if value else "0")


class _Decimals(dict[Decimal, Verbatim]):
    """From Decimals to their texts: equal ones have one text, whatever their exponents; emptied when full.

    A dict, for its bound `__getitem__` is called from C without a Python frame.
    """

    def __init__(self, written: Callable[[Decimal], Verbatim]) -> None:
        super().__init__()
        self._written = written

    def __missing__(self, value: Decimal) -> Verbatim:
        text = self._written(value)
        if len(text) <= _MAX_REMEMBERED:
            if len(self) >= _MAX_LITERALS:
                self.clear()
            self[value] = text
        return text


def _enum_value(member: Any) -> object:
    return member.value


def _whole(kind: type, base: type, step: Step) -> Step:
    """The step for a plain type, or for a class derived from it, which may hold or read more than that."""
    checks = [check for check in (beside(kind, base), _same_when_read(kind, base, step)) if check is not None]
    if not checks:
        return step

    def checked(value: Any) -> object:
        for check in checks:
            check(value)
        return step(value)

    return checked


def _same_when_read(kind: type, base: type, step: Step) -> Callable[[Any], None] | None:
    """What refuses containers that read otherwise than they are stored; None where no method does."""
    read = getattr(kind, "items" if base is dict else "__iter__", None)
    if base not in (dict, list, tuple, deque) or read in (base.__iter__, dict.items, OrderedDict.items):
        return None

    def check(value: Any) -> None:
        stored: Any = step(value)
        seen = list(value.items() if base is dict else value)
        if base is dict:
            pairs = [(item, stored.get(name, seen)) for name, item in seen]
        else:
            pairs = list(zip(seen, stored, strict=False))
        if len(seen) != len(stored) or any(one is not other for one, other in pairs):
            raise Refused(f"{kind.__name__} reads otherwise than it is stored: pass a plain {base.__name__}")

    return check


def _dict_of(mapping: Any) -> object:
    return dict(mapping.items())


def _bytes_token(value: Any) -> Verbatim:
    return Verbatim(f'bytes("{base64.b64encode(memoryview(value).tobytes()).decode()}")')


def _text_of_time(value: date | time | timedelta) -> str:
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        raise Refused(f"{type(value).__name__} is finer than a microsecond")
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, time):
        if value.tzinfo is not None and value.utcoffset() is None:
            raise Refused("a time whose zone has no fixed offset")
        return time.isoformat(value) + (_LATER if value.fold and value.tzinfo is None else "")
    return date.isoformat(value)


def _duration(value: timedelta) -> str:
    microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    whole, rest = divmod(abs(microseconds), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if microseconds < 0 else ''}PT{whole}{fraction}S"


def _moment(value: datetime) -> str:
    """An aware datetime as its instant in UTC, with a Z; a naive one as it stands, without.

    A naive one of an hour that the clocks go through twice says whether it is of the second time (PEP 495).
    """
    offset = value.utcoffset()
    # A plain datetime, for subclasses bring isoformat and arithmetic of their own.
    day = date(value.year, value.month, value.day)
    clock = time(value.hour, value.minute, value.second, value.microsecond)
    local = datetime.combine(day, clock)
    if offset is None:
        return local.isoformat() + (_LATER if value.fold else "")
    try:
        return f"{(local - offset).isoformat()}Z"
    except OverflowError:
        # In UTC it lies in the year 0 or 10000, which datetime does not have: compute 400 years nearer.
        shift, years = (_FOUR_CENTURIES, 400) if local.year > 1 else (-_FOUR_CENTURIES, -400)
        moved = local - shift - offset
        return f"{moved.year + years:04d}{moved.isoformat()[4:]}Z"


# Each takes the plain value out of an instance of a subclass too, past methods that the subclass overrides.
_PLAIN: tuple[tuple[type, Step], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    *((moment, _text_of_time) for moment in (datetime, date, time, timedelta)),
    (uuid.UUID, uuid.UUID.__str__),
    *((binary, _bytes_token) for binary in (bytes, bytearray, memoryview)),
    (dict, dict.copy),
    (list, list.copy),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (deque, lambda value: list(deque.__iter__(value))),
    (set, frozenset),
    (frozenset, frozenset),
)
