"""Canonical forms under one rule, put together from the quick ways and the ways that always work.

The quick ways recurse and use C code that recurses. When one gives up for a reason that lies in the
caller's stack or in the interpreter's limits, and not in the input, the slow way is asked, so an outcome
never depends on where a function was called from. Only where fewer than a dozen frames are left, and the slow
way cannot be called either, does RecursionError leave, as it would from any call made there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from idemcore.errors import CanonicalizationError

from .exclude import Exclusion, pruned
from .number import EXACT, RFC8785, Refused
from .scan import SHORTEST_MEMBER, WHITESPACE, Scanner, as_many_strings, strings_in
from .tree import MAX_DEPTH
from .values import Reducer
from .write import Writer

Mode = Literal["exact", "rfc8785"]

RULES = {"exact": EXACT, "rfc8785": RFC8785}
_SCANNERS = {"exact": Scanner(ints_are_exact=True), "rfc8785": Scanner(ints_are_exact=False)}


class Form:
    """Canonical forms under one rule.

    Args:
        mode: how numbers are printed.
        exclusion: what is left out, if anything.
        secret: turns the canonical form of a secret into the text that stands for it.
    """

    def __init__(self, mode: Mode, exclusion: Exclusion | None, secret: Callable[[bytes], str]) -> None:
        rules = RULES[mode]
        self._exclusion = exclusion
        self._scanner = _SCANNERS[mode]
        self._literals = rules.literals
        # An int that is not printed as it is goes the way of a literal, where it is noted if it grows.
        in_json = replace(rules, integer=lambda value: self._literals.new(b"%d" % value))
        self._json_writer = Writer(in_json, rules.literals, _as_it_is)
        self._reduce = Reducer(rules, lambda content: secret(self._writer.slowly(content).encode()))
        self._writer = Writer(rules, rules.floats, self._reduce, self._reduce.steps)

    def of_value(self, value: object) -> bytes:
        """See `Canonicalizer.canonicalize`."""
        if self._exclusion is not None:
            value, _ = pruned(value, self._exclusion, self._reduce)
        try:
            return self._writer.quickly(value).encode()
        except Exception:
            # Whatever it was, the walk without recursion finds it again and knows its path, or gets through.
            return self._writer.slowly(value).encode()

    def of_json(self, body: bytes) -> bytes:
        """See `Canonicalizer.canonicalize_json`."""
        try:
            text = body.decode().strip(WHITESPACE)
            grown = self._literals.grown
            try:
                tree, beside = self._scanner.quickly(text), 0
                if self._exclusion is not None:
                    tree, beside = self._without_excluded(tree, self._exclusion)
                written = self._json_writer.quickly(tree).encode()
                # The scanner keeps the last of duplicate names. Each one that it dropped took a string with it,
                # so both texts hold the same number of strings exactly if there was no duplicate. There is
                # nothing to count where fewer bytes are gone than a member has: a canonical string, word or
                # int is spelled as shortly as JSON can, and literals that grow are noted.
                may_have_lost = len(body) - len(written) >= SHORTEST_MEMBER or self._literals.grown is not grown
                if may_have_lost and not as_many_strings(body, written, beside):
                    raise Refused("a duplicate member name")
                return written
            except (Refused, UnicodeError):
                raise
            except (RecursionError, ValueError):
                # The caller's stack is nearly used up, or an int is longer than the interpreter converts.
                return self._json_slowly(text)
        except UnicodeDecodeError:
            raise CanonicalizationError("the body is not UTF-8") from None
        except UnicodeEncodeError:
            raise CanonicalizationError("the body holds a lone surrogate") from None
        except Refused as reason:
            raise CanonicalizationError(f"the body has no canonical form: {reason}") from None

    def _without_excluded(self, tree: object, exclusion: Exclusion) -> tuple[object, int]:
        """The rest of a tree, and how many strings what is left out holds.

        That still has to be sound: a duplicate or a lone surrogate may hide in it.
        """
        rest, dropped = pruned(tree, exclusion, _as_it_is)
        writer = self._json_writer
        return rest, sum(strings_in(writer.quickly(item, depth).encode()) for depth, item in dropped)

    def _json_slowly(self, text: str) -> bytes:
        tree = self._scanner.slowly(text, MAX_DEPTH)
        if self._exclusion is not None:
            tree, dropped = pruned(tree, self._exclusion, _as_it_is)
            for _, item in dropped:
                self._json_writer.slowly(item)
        return self._json_writer.slowly(tree).encode()


def _as_it_is(value: object) -> object:
    return value  # a tree from JSON text needs no reducing
