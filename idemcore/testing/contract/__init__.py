"""The store contract as tests: a back end that passes them may stand under the engine.

A back end's own test module needs three lines::

    class TestMyStore(StoreContract):
        def open_store(self): return MyStore(clock=self.clock)
        def age(self, identity, seconds): self.clock.advance(seconds)

`JoiningContract` is for back ends that join a caller's transaction, `UnreadableContract` for those whose
records other programs can reach, `CommittedContract` for those that only hold what another one joined. Run
them with pytest, or call the methods by yourself.
"""

from idemcore.testing.contract.claims import ClaimContract
from idemcore.testing.contract.housekeeping import HousekeepingContract
from idemcore.testing.contract.joining import JoiningContract
from idemcore.testing.contract.outcomes import OutcomeContract
from idemcore.testing.contract.races import RaceContract
from idemcore.testing.contract.rare import CommittedContract, UnreadableContract
from idemcore.testing.contract.verdicts import VerdictContract

__all__ = ["CommittedContract", "JoiningContract", "StoreContract", "UnreadableContract"]


class StoreContract(ClaimContract, OutcomeContract, VerdictContract, HousekeepingContract, RaceContract):
    """What every store must do."""
