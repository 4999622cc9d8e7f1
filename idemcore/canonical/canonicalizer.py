"""A Canonicalizer is one rule: what counts in a request, how it is written, and the tag that says so.

Two promises: a true retry never conflicts, and a different amount never replays. Where they pull apart, the
second wins: whatever has no canonical form is compared byte for byte instead of being guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NoReturn, final

from idemcore.errors import CanonicalizationError, ConfigurationError
from idemcore.machine import Fingerprinter

from .compiled_json import FastWay
from .digest import CANONICAL, CONFIG, PARTS, RAW, SECRET, digest, framed
from .exclude import Exclusion, compiled, normal_pointers
from .fast import chosen
from .fingerprinter import Fingerprints, Part
from .form import RULES, Form, Mode

VERSION: Final = "v1"

OnInvalid = Literal["raw", "reject"]
BytesLike = bytes | bytearray | memoryview

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,16}")
_MIN_KEY = 16  # bytes


@final
class Canonicalizer:
    """One rule for fingerprints: frozen, hashable, and safe to share between threads.

    Args:
        exclude: what is no part of the request: JSON Pointers (RFC 6901) whose ``*`` stands for one index or
            member, or bare names of top-level members. A name that begins with NUL is of no document.
        mode: ``exact`` prints each number's exact decimal value in RFC 8785's layout; ``rfc8785`` rounds to
            doubles, for comparing with signatures made elsewhere, and so merges 9007199254740993 with …992.
        accept: older rules that records may still carry; give them for one retention after a change. Their
            own `accept` counts too.
        on_invalid: what a JSON body without canonical form gets: a ``raw`` fingerprint of its bytes, or a
            CanonicalizationError (``reject``).
        key: makes digests keyed (HMAC-SHA-256), so a stored fingerprint is no oracle for a PIN; at least 16
            bytes. It is shown nowhere, so a rule with one is not pickled: make it in each process.
        fast: whether JSON texts go through msgspec (the extra ``fast``), which changes no result: True demands
            it, False declines it, None leaves it to the environment variable IDEMCORE_FAST (``1`` or ``0``)
            and then to whether it is installed. Mode ``rfc8785`` never does.
        key_id: names the key in the tag, 1 to 16 of ``A-Za-z0-9_-``; required with `key`.

    Raises:
        ConfigurationError: a malformed pointer, an unknown mode, a short key, two keys under one tag.
        ImportError: `fast` is demanded and msgspec is not installed.
    """

    __slots__ = (
        "_asked_fast",
        "_exclusion",
        "_fast",
        "_form",
        "_key",
        "_older",
        "accept",
        "exclude",
        "key_id",
        "mode",
        "on_invalid",
        "tag",
    )

    exclude: tuple[str, ...]
    mode: Mode
    accept: tuple[Canonicalizer, ...]
    on_invalid: OnInvalid
    key_id: str | None
    tag: str
    _asked_fast: bool | None
    _exclusion: Exclusion | None
    _fast: FastWay | None
    _form: Form
    _key: bytes | None
    _older: dict[str, Canonicalizer]

    def __init__(
        self,
        exclude: Iterable[str] = (),
        mode: Mode = "exact",
        accept: Iterable[Canonicalizer] = (),
        *,
        on_invalid: OnInvalid = "raw",
        key: bytes | None = None,
        key_id: str | None = None,
        fast: bool | None = None,
    ) -> None:
        if mode not in tuple(RULES):  # a tuple, for it may be anything, hashable or not
            raise ConfigurationError(f"mode is 'exact' or 'rfc8785', not {mode!r}")
        if on_invalid not in ("raw", "reject"):
            raise ConfigurationError(f"on_invalid is 'raw' or 'reject', not {on_invalid!r}")
        _check_key(key, key_id)
        pointers = normal_pointers(exclude)
        object.__setattr__(self, "exclude", pointers)
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "on_invalid", on_invalid)
        object.__setattr__(self, "key_id", key_id)
        object.__setattr__(self, "tag", _tag(mode, pointers, key_id))
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_exclusion", compiled(pointers))
        object.__setattr__(self, "_form", Form(mode, self._exclusion, self._secret))
        object.__setattr__(self, "_asked_fast", fast)
        object.__setattr__(self, "_fast", chosen(fast) if mode == "exact" else None)
        object.__setattr__(self, "_older", self._collected(accept))

    def canonicalize(self, value: object) -> bytes:
        """The canonical form of a Python value, dataclass or pydantic model.

        It is canonical JSON in UTF-8, except that bytes and secrets appear as tagged tokens which are no
        JSON. The value is read, never changed. An Enum's member is its value and a dataclass its fields; a
        model is its set fields, its extras, and unset fields of a Literal type, which may be the tag of a
        union. What a class is called does not count. An object that holds more than that is refused.

        Raises:
            CanonicalizationError: naming the path (``$.lines[3].meta``) of what has no canonical form.
        """
        return self._form.of_value(value)

    def canonicalize_json(self, body: BytesLike) -> bytes:
        """The canonical form of a JSON text (RFC 8259, UTF-8).

        Raises:
            CanonicalizationError: not JSON, not UTF-8, a BOM, a duplicate name, a lone surrogate, nested
                more than 512 deep, an exponent of more than 12 digits; in mode ``rfc8785``, instead of the
                last, a number beyond the range of doubles.
        """
        if not isinstance(body, bytes):
            body = _bytes_of(body)
        form = self._fast(body, self._exclusion) if self._fast is not None else None
        return form if form is not None else self._form.of_json(body)

    def fingerprint(self, value: object) -> str:
        """``tag:hex`` of a value's canonical form; see `canonicalize`."""
        return f"{self.tag}:{digest(CANONICAL, self._form.of_value(value), self._key).hex()}"

    def fingerprint_json(self, body: BytesLike) -> str:
        """``tag:hex`` of a JSON text's canonical form, else of its bytes as they are; see `on_invalid`."""
        return f"{self.tag}:{self.digest_json(body).hex()}"

    def fingerprint_parts(self, domain: str, parts: Sequence[bytes | Part]) -> str:
        """``tag:hex`` of a composed request, such as method, path, query, media type and body.

        Each part enters behind its length, so nothing can slide from one part into the next.

        Args:
            domain: says what the parts are; requests of two domains never have one fingerprint.
            parts: bytes as they are, or a Part such as JsonBody, asked for its digest.
        """
        texts = [part if isinstance(part, bytes) else part.digest(self) for part in parts]
        return f"{self.tag}:{digest(PARTS, framed([domain.encode(), *texts]), self._key).hex()}"

    def digest_json(self, body: BytesLike) -> bytes:
        """32 bytes for a JSON text, as a part of something composed; see `fingerprint_json`."""
        if not isinstance(body, bytes):
            body = _bytes_of(body)
        try:
            # The steps of canonicalize_json, without its calls: this is the path of every request.
            form = self._fast(body, self._exclusion) if self._fast is not None else None
            return digest(CANONICAL, form if form is not None else self._form.of_json(body), self._key)
        except CanonicalizationError:
            if self.on_invalid == "reject":
                raise
            return digest(RAW, body, self._key)

    def digest_raw(self, body: bytes) -> bytes:
        """32 bytes for bytes that are compared as they are; never equal to a canonical digest."""
        return digest(RAW, body, self._key)

    def fingerprinter(self, value: object) -> Fingerprinter:
        """Answers for a value. Older rules are computed when asked for: ask before the value can change."""
        return Fingerprints(self, self._older, lambda rule: rule.fingerprint(value))

    def fingerprinter_json(self, body: bytes) -> Fingerprinter:
        """Answers for a JSON body."""
        return Fingerprints(self, self._older, lambda rule: rule.fingerprint_json(body))

    def fingerprinter_parts(self, domain: str, parts: Sequence[bytes | Part]) -> Fingerprinter:
        """Answers for a composed request; see `fingerprint_parts`."""
        kept = tuple(parts)
        return Fingerprints(self, self._older, lambda rule: rule.fingerprint_parts(domain, kept))

    def _secret(self, content: bytes) -> str:
        """What stands for a secret's canonical form: its digest, as a token that no document can have."""
        return f'secret("{digest(SECRET, content, self._key).hex()}")'

    def _collected(self, accept: Iterable[Canonicalizer]) -> dict[str, Canonicalizer]:
        """Remember `accept`; all accepted rules by their tags."""
        try:
            object.__setattr__(self, "accept", tuple(accept))
        except TypeError:
            raise ConfigurationError("accept takes several Canonicalizers, such as [older]") from None
        known: dict[str, Canonicalizer] = {self.tag: self}
        for given in self.accept:
            if not isinstance(given, Canonicalizer):
                raise ConfigurationError(f"accept takes Canonicalizers, not {type(given).__name__}")
            for rule in (given, *given._older.values()):
                if known.setdefault(rule.tag, rule)._key != rule._key:
                    raise ConfigurationError(f"two keys under the tag {rule.tag}: give each its own key_id")
        del known[self.tag]
        return known

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Canonicalizer is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Canonicalizer is frozen: {name} cannot be deleted")

    def _identity(self) -> tuple[object, ...]:
        return (self.tag, self.exclude, self.accept, self.on_invalid, self._key)

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Canonicalizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[Callable[..., Canonicalizer], tuple[object, ...]]:
        if self._key is not None:
            raise TypeError(
                "A Canonicalizer with a key is not pickled, for its key would be written down: make it in each "
                "process."
            )
        return _rebuilt, (self.exclude, self.mode, self.accept, self.on_invalid, self._asked_fast)

    def __copy__(self) -> Canonicalizer:
        return self

    def __deepcopy__(self, memo: object) -> Canonicalizer:
        return self

    def __repr__(self) -> str:
        return f"<Canonicalizer {self.tag} exclude={list(self.exclude)}>"


def _rebuilt(
    exclude: tuple[str, ...],
    mode: Mode,
    accept: tuple[Canonicalizer, ...],
    on_invalid: OnInvalid,
    fast: bool | None,
) -> Canonicalizer:
    return Canonicalizer(exclude, mode, accept, on_invalid=on_invalid, fast=fast)


def _bytes_of(body: object) -> bytes:
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    raise CanonicalizationError(f"a JSON body is bytes, not {type(body).__name__}")


def _check_key(key: bytes | None, key_id: str | None) -> None:
    if (key is None) != (key_id is None):
        raise ConfigurationError("key and key_id go together")
    if key is not None and (not isinstance(key, bytes) or len(key) < _MIN_KEY):
        raise ConfigurationError(f"key is bytes, at least {_MIN_KEY} of them")
    if key_id is not None and not (isinstance(key_id, str) and _KEY_ID.fullmatch(key_id)):
        raise ConfigurationError("key_id is 1 to 16 letters, digits, '-' or '_'")


def _tag(mode: Mode, pointers: tuple[str, ...], key_id: str | None) -> str:
    """``v1.exact`` by default; a digest of the excluded pointers and the name of the key follow."""
    excluded = digest(CONFIG, framed(pointer.encode() for pointer in pointers))
    return f"{VERSION}.{mode}{'-' + excluded.hex()[:16] if pointers else ''}{'+' + key_id if key_id else ''}"
