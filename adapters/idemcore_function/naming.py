"""What an operation is called: a name that lasts, and is one function's of all that can be called at a time."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, NamedTuple, TypeGuard
from weakref import ReferenceType, WeakKeyDictionary, ref

from idemcore import ConfigurationError, Engine

_STARTED: Final = ("__main__", "__mp_main__", "<run_path>")
"""The names of a module that was started and not imported, the second one in a process of multiprocessing's."""

_SAID_OF_MANY: Final = ("", "_", "<lambda>")


class _Origin(NamedTuple):
    """Where a function was written down, or where what is no function of Python's was decorated.

    Attributes:
        name: qualified, within the module.
        module: of the code.
        code: the function's, or that around the decorator.
        names: the identity of the module's names.
        spec: of the module; after a reload it has another one.
    """

    name: str
    module: str
    code: CodeType
    names: int
    spec: object

    def is_made_anew(self, other: _Origin) -> bool:
        """Whether this is the other one after a reload, in a notebook's cell that is run again, or imported
        under a second name. One code that makes two functions makes two, and so do two places in one file.
        """
        if self.code is other.code or self.name != other.name:
            return False
        same_file = self.code.co_filename == other.code.co_filename
        if same_file and self.names == other.names and self.spec is other.spec:
            return self.code.co_firstlineno == other.code.co_firstlineno
        return self.module == other.module or (same_file and not self.code.co_filename.startswith("<"))


class _Named(NamedTuple):
    """Who has a name. Nothing is kept alive by it."""

    call: ReferenceType[Callable[..., object]]
    origin: _Origin
    thread: int


_named: Final[WeakKeyDictionary[Engine, dict[str, _Named]]] = WeakKeyDictionary()


def namespace_of(function: Callable[..., object]) -> str:
    """The default name of a function's operation, ``module:qualified.name``.

    Raises:
        ConfigurationError: the function has no name of its own, so others could meet it under that name.
    """
    name: str = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None) or ""
    if name.rpartition(".")[2] in _SAID_OF_MANY or not module:
        raise ConfigurationError(
            "This callable has no name of its own; give it one with namespace='…', and keep it for as long "
            "as its records are kept."
        )
    if module in _STARTED:
        spec = getattr(inspect.unwrap(function), "__globals__", {}).get("__spec__")
        module = "__main__" if spec is None else spec.name
        if module == "__main__":
            raise ConfigurationError(
                f"{name} is written in a script. Another script may have the name of this one, and it has "
                f"another when it is imported: name what the function does by namespace='…', such as "
                f"'billing.{name.rpartition('.')[2]}', and keep that for as long as its records are kept."
            )
    return f"{module}:{name}"


def reserve_name(engine: Engine, namespace: str, call: Callable[..., object], frame: FrameType) -> None:
    """Gives a name to one function only: two would share their records, and one get the other's results.

    A function that nobody can call any more has no name. Threads may each make one of the same code, as where
    each request makes its own.

    Args:
        engine: whose records they are.
        namespace: the name.
        call: what the decorator returns, with the function that it got as ``__wrapped__``.
        frame: where it is decorated.

    Raises:
        ConfigurationError: another function has this name on this engine.
    """
    new = _Named(ref(call), _origin_of(_given(call), frame), get_ident())
    names = _named.setdefault(engine, {})
    if _is_in_the_way(names.get(namespace), new):
        gc.collect()  # one that calls itself holds itself
    other = names.get(namespace)
    if _is_in_the_way(other, new):
        raise ConfigurationError(
            f"{other.origin.module}:{other.origin.name} has the namespace {namespace!r} on this engine: the "
            "two would share their records, and one be given the other's results. Give each its own; make it "
            "once where each call makes it anew; where that is this function before it was renamed, start the "
            "process anew."
        )
    names[namespace] = new


def _is_in_the_way(other: _Named | None, new: _Named) -> TypeGuard[_Named]:
    if other is None or (call := other.call()) is None:
        return False
    if _given(call) is _given(new.call()) or new.origin.is_made_anew(other.origin):
        return False
    return other.origin.code is not new.origin.code or other.thread == new.thread


def _given(call: Any) -> Any:
    """What was decorated; to give ``partial(f)`` is not to give ``f``."""
    return call.__wrapped__


def _origin_of(function: Callable[..., object], frame: FrameType) -> _Origin:
    written = inspect.unwrap(function)
    if isinstance(written, FunctionType):
        name, module, code, names = (
            written.__qualname__,
            written.__module__,
            written.__code__,
            written.__globals__,
        )
    else:  # a partial or an object: what it wraps others may wrap as well
        code, names = frame.f_code, frame.f_globals
        name, module = code.co_qualname, names.get("__name__", "")
    return _Origin(name, module, code, id(names), names.get("__spec__"))
