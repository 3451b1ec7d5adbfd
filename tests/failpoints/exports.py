"""The log is exported for auditors: a bundle is there whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from ledger.bundle.export import export_bundle
from ledger.bundle.verify import verify_bundle
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Before, Failpoint, Fault
from tests.failpoints.scene import Scene
from tests.scenes import audit
from tests.scenes.running_market import RENTER, START_US, Market
from tests.tampering.scene import KEY

DEATH, LOST, FULL = Fault.DEATH, Fault.LOST, Fault.FULL
MINUTE_US = 60_000_000
EXPORT = "ledger.bundle.export:"


class Exports(Scene):
    failpoints: ClassVar = (
        Failpoint("export.row_read", After("ledger.tree.walk:Walk.step"), (DEATH, LOST, FULL), 5),
        Failpoint(
            "export.log_written", After("ledger.bundle.parquet:write_log"), (DEATH, LOST, FULL), 2
        ),
        Failpoint("export.file_written", After(EXPORT + "_file"), (DEATH, LOST, FULL), 2),
        Failpoint("export.telling", Before(EXPORT + "manifest_bytes"), (DEATH, FULL)),
        Failpoint("export.renaming", Before("pathlib:Path.rename"), (DEATH, FULL)),
        Failpoint("export.renamed", After("pathlib:Path.rename"), (DEATH,)),
    )

    def found(self) -> None:
        market = Market(self.ledger, self.observer)
        market.found("one", gpus=1)
        self.market, self.heads = market, audit.Scene(self.observer)

    def prepare(self) -> None:
        """Another fact, another report, a pin and a signed head."""
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
        self.market.report(
            "one",
            None,
            START_US + self.round * 60_000_000,
            START_US + (self.round + 1) * 60_000_000,
        )
        self.heads.pin()
        self.note = self.heads.sign(self.folder)

    def act(self, tell: Tell) -> None:
        """As an operator who asks again until the bundle is there."""
        bundle = self._bundle(self.round)
        if not bundle.exists():
            export_bundle(self.conninfo, bundle, KEY, "0.1.0")
        tell(str(bundle))

    def check(self, told: list[Any], again: list[Any]) -> None:
        assert told in ([], again)
        assert not [*self.folder.glob(".*.part")], "what a dead export left"
        published = self.folder / "head"
        published.write_text(self.note)
        found = verify_bundle(self._bundle(self.round), root=published, key=str(KEY))
        assert found.ok, found.first_bad
        assert found.checkpoint is not None
        assert (found.facts, found.reports) == (found.checkpoint.size, self.round)
        for earlier in range(1, self.round):
            assert (self._bundle(earlier) / "manifest.json").exists()

    def _bundle(self, number: int) -> Path:
        return self.folder / f"bundle-{number}"
