"""A backup is taken while the market runs: it is there whole, or not at all.

A server of its own, whose data folder is copied: a second for each life, so this scene is long.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

from api.backup import taking
from api.backup.archive import Archive
from api.backup.programs import Programs
from api.backup.taking import Source
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from ledger.tree import trees
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Before, Failpoint, Fault
from tests.failpoints.scene import Scene
from tests.scenes.running_market import RENTER, START_US, Market
from tests.scenes.shell import tallystick
from tests.servers.standby import folder

DEATH, FULL = Fault.DEATH, Fault.FULL
TAKING = "api.backup.taking:"


class Backups(Scene):
    is_long = True
    failpoints: ClassVar = (
        Failpoint("backup.database_copied", After(TAKING + "_copy_database"), (DEATH, FULL)),
        Failpoint("backup.files_copied", After(TAKING + "_copy_files"), (DEATH, FULL)),
        Failpoint("backup.recorded", After("api.backup.archive:Backup.write"), (DEATH, FULL)),
        Failpoint("backup.summed", After("api.backup.sums:write"), (DEATH, FULL)),
        Failpoint("backup.renaming", Before("pathlib:Path.rename"), (DEATH, FULL)),
        Failpoint("backup.renamed", Before(TAKING + "entry_to_disk"), (DEATH,)),
    )

    def found(self) -> None:
        self.stack = ExitStack()
        root = self.stack.enter_context(folder())
        self.data, self.archive = root / "data", Archive(root / "backups")
        self.service = self.stack.enter_context(
            Service.open(Settings(data_dir=self.data), clock=SimulatedClock(START_US))
        )
        connection = self.stack.enter_context(self.service.connect())
        self.market = Market(self.service.ledger, connection)
        self.market.found("one", gpus=1)
        self.source = Source(self.service.conninfo, self.data, self.service.settings.log_origin)
        self.labels = list[str]()

    def close(self) -> None:
        self.stack.close()

    def prepare(self) -> None:
        self.market.do(
            START_US,
            ConfirmDeposit(
                deposit_id=f"deposit_{self.round}",
                account_id=RENTER,
                source="cash",
                amount=credit(1),
                reference=str(self.round),
                confirmed_by="operator",
                at_us=START_US,
            ),
        )
        with self.service.connect() as connection:
            trees.follow_all(connection)
            trees.publish_checkpoint(connection, self.service.signer, START_US)
            self.facts = self.service.head(connection)

    def act(self, tell: Tell) -> None:
        tell(taking.take(self.source, self.archive).label)

    def check(self, told: list[Any], again: list[Any]) -> None:
        """Those that were told are there; the newest is whole, and has all facts of then."""
        self.labels += [*told, *again]
        found = self.archive.backups()
        assert set(self.labels) <= {one.label for one in found}
        assert not [*self.archive.base.glob(".*.part")], "what a dead backup left"
        chain = self.archive.chain(again[-1])
        assert self.archive.faults(chain, Programs(durable=False), lambda *_: None) == []
        assert chain[-1].facts == self.facts

    def end(self, views: tuple[str, ...]) -> None:
        """The newest one becomes a market, and is proved."""
        del views
        drilled = tallystick("drill", self.archive.folder, "--data-dir", self.data, "--json")
        assert drilled.code == 0, drilled.out + drilled.err
        assert drilled.document["whole"]
        assert drilled.document["facts"] >= self.facts
