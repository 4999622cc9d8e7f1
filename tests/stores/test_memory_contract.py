"""The store contract, on memory."""

from idemcore.identity import Identity
from idemcore.record import State
from idemcore.stores.memory import MemoryStore
from idemcore.testing.contract import CommittedContract, StoreContract


class _OnMemory:
    now = 1_000.0

    def open_store(self) -> MemoryStore:
        return MemoryStore(clock=lambda: self.now)

    def age(self, identity: Identity, seconds: float) -> None:
        self.now += seconds


class TestMemoryStore(_OnMemory, StoreContract):
    """Everything that a store must do."""


class TestCommittedInMemory(_OnMemory, CommittedContract):
    """No transaction can be joined in memory; the state is set by hand."""

    store: MemoryStore

    def commit(self, identity: Identity) -> None:
        self.store._shelf.entries[identity].state = State.COMMITTED
