"""The key that signs the heads of the log is replaced, by the command; a second run ends what a
dead one began.
"""

from __future__ import annotations

from typing import Any, ClassVar

from api.audit.tree_timer import run_trees
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from ledger.tree import trees
from ledger.tree.checkpoint import open_checkpoint, parse_verifier_key
from tests.failpoints.lives import Tell
from tests.failpoints.places import Before, Failpoint, Fault
from tests.failpoints.scene import Scene
from tests.scenes.running_market import START_US, Market
from tests.scenes.shell import Ran, tallystick

ROTATION = "api.process.key_rotation:"
DEATH, FULL = Fault.DEATH, Fault.FULL


class Keys(Scene):
    failpoints: ClassVar = (
        Failpoint("keys.next_made", Before(ROTATION + "_announce"), (DEATH,)),
        Failpoint("keys.announced", Before(ROTATION + "_put_aside"), (DEATH,)),
        Failpoint("keys.replacing", Before("os:replace"), (DEATH, FULL), 2),
    )

    def found(self) -> None:
        with self._service() as service:
            Market(service.ledger, self.observer).found()
            with service.connect() as connection:
                run_trees(service, connection, START_US)

    def act(self, tell: Tell) -> None:
        ran = self._run("keys", "rotate", "--json")
        if ran.code:
            raise OSError(ran.err)
        tell(ran.document["verifier_key"])

    def check(self, told: list[Any], again: list[Any]) -> None:
        """The key in force is the announced one, it signs, and the key before is known."""
        (key,) = again
        assert told in ([], [key])
        assert self._run("keys", "check", "--json").code == 0
        with self._service() as service:
            assert service.verifier_key == key
            with service.connect() as connection:
                run_trees(service, connection, START_US)
        rotations = trees.rotations(self.observer)
        assert [one.number for one in rotations] == list(range(1, len(rotations) + 1))
        assert self.round <= len(rotations) <= 2 * self.round
        assert str(rotations[-1].new) == key
        signed = trees.latest_checkpoint(self.observer)
        assert signed is not None
        open_checkpoint(signed[1], parse_verifier_key(key))

    def _service(self) -> Service:
        settings = Settings(data_dir=self.folder / "data", database_url=self.conninfo)
        return Service.open(settings, clock=SimulatedClock(START_US))

    def _run(self, *words: str) -> Ran:
        return tallystick(*words, DATA_DIR=self.folder / "data", DATABASE_URL=self.conninfo)
