"""Which function each decorator was given and which one it returned; neither is kept alive by that.

One extension object notes for itself: what another one decorated, for another app, is no business of its apps.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

View: TypeAlias = Callable[..., Any]


class DecoratedViews:
    """The views that one extension object protects by its decorators."""

    def __init__(self) -> None:
        self._versions: weakref.WeakKeyDictionary[View, list[weakref.ref[View]]] = weakref.WeakKeyDictionary()

    def note(self, view: View, guarded: View) -> None:
        """Remembers that `guarded` is the protected version of `view`."""
        try:
            self._versions.setdefault(view, []).append(weakref.ref(guarded))
        except TypeError:
            pass  # a callable that cannot be referred to weakly, or hashed, goes unchecked

    def versions_of(self, view: View) -> list[View | None]:
        """What protects a bare view; None for a version that is gone."""
        try:
            return [reference() for reference in self._versions.get(view, ())]
        except TypeError:
            return []
