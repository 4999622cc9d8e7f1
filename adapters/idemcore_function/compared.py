"""What of a call is compared with that of a retry: its arguments, but for what is left out.

Today's rule makes the fingerprints of new records; those that it accepts answer for older ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from idemcore import Canonicalizer, ConfigurationError
from idemcore.machine import Fingerprinter, PlainFingerprint

from .binding import Binding


class Compared:
    """Makes the fingerprint of a call's arguments.

    Args:
        rule: see `rule_over`.
        binding: of the function.
        key_names: the parameters that the key is made of.
        namespace: names the function in messages.

    Attributes:
        whole: the arguments that are left out altogether.

    Raises:
        ConfigurationError: a method whose key and rule both leave its object open.
    """

    def __init__(
        self, rule: Canonicalizer, binding: Binding, key_names: Collection[str], namespace: str
    ) -> None:
        self._rule = rule
        whole = frozenset(pointer[1:] for pointer in rule.exclude if pointer.count("/") == 1)
        self.whole: Final = whole
        receiver = next(iter(binding.names), "")
        if receiver not in ("self", "cls") or receiver in whole:
            self._never: frozenset[str] = frozenset()
        elif receiver in key_names:  # what stands for the object is in the key
            self._never = frozenset({receiver})
        else:
            raise ConfigurationError(
                f"{namespace} is a method: say what stands for its object. Write '{{{receiver}.id}}' into "
                f"the key, or exclude={{'{receiver}'}} where all objects share their keys."
            )
        # The rule leaves these out too, and takes longer for it. An older rule may have compared them.
        self._left_out = self._never if rule.accept else self._never | whole

    def fingerprint(self, arguments: Mapping[str, Any]) -> Fingerprinter:
        """The fingerprint, made now: what older rules say is asked before the function runs, or never.

        Raises:
            CanonicalizationError: an argument has no canonical form.
        """
        if self._left_out:
            arguments = {name: value for name, value in arguments.items() if name not in self._left_out}
        if self._rule.accept:
            return self._rule.fingerprinter(arguments)
        # As PlainFingerprint(…) makes it, but for a call of Python's own in each call.
        return tuple.__new__(PlainFingerprint, (self._rule.fingerprint(arguments),))


def rule_over(
    binding: Binding,
    exclude: Iterable[str],
    accept: Iterable[Canonicalizer],
    canonicalizer: Canonicalizer | None,
) -> Canonicalizer:
    """The rule that compares a function's arguments, as the decorator was told.

    Raises:
        ConfigurationError: it leaves out what is no parameter, or is said twice.
    """
    pointers = Canonicalizer(exclude).exclude
    accept = tuple(accept)
    if canonicalizer is None:
        return Canonicalizer([_known(pointer, binding) for pointer in pointers], accept=accept)
    if pointers or accept:
        raise ConfigurationError(
            "canonicalizer= is the whole rule: give exclude and accept to the Canonicalizer instead."
        )
    for pointer in canonicalizer.exclude:
        if _known(pointer, binding) != pointer:
            raise ConfigurationError(
                f"canonicalizer= leaves out {pointer!r}, which is no parameter; what **{binding.extra} takes "
                f"is '/{binding.extra}{pointer}'."
            )
    return canonicalizer


def _known(pointer: str, binding: Binding) -> str:
    """The pointer from an argument on; a name that only ``**kwargs`` can hold points into it."""
    name: Final = pointer[1:].split("/")[0].replace("~1", "/").replace("~0", "~")
    if name in binding.names or name == "*":
        return pointer
    if binding.extra is not None:
        return f"/{binding.extra}{pointer}"
    raise ConfigurationError(
        f"exclude= names {name!r}; the function's parameters are: {', '.join(binding.names) or 'none'}."
    )
