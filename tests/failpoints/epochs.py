"""The end of an epoch: the gate, the cut, the files, the seal, the credits and their maturing.

One reward makes a chunk here, so that a life may end between two.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, ClassVar

import pytest

from api.epochs import closing
from api.epochs.files import clients_path, epoch_path
from api.metering.accrual import accrue
from domain.duration import DAY_US, HOUR_US
from domain.epochs import epoch as epochs
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.money import token
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Answered, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.scenes.running_market import OWNER, START_US, Market

DEATH, LOST, FULL = Fault.DEATH, Fault.LOST, Fault.FULL
EMISSION = 10**12
CLOSING = "api.epochs.closing:"
APPENDS = 6
"""Two chunks of an earlier epoch mature; close, seal, a chunk for each of two rewards."""


class Epochs(Scene):
    views = ("epochs", "rewards")
    failpoints: ClassVar = (
        Failpoint("cut.gate_passed", After(CLOSING + "_gate"), (DEATH, LOST), 2),
        Failpoint("cut.pinned", After("ledger.tree.cut:pin"), (DEATH, LOST)),
        Failpoint("cut.recorded", After(CLOSING + "close_epoch"), (DEATH, LOST)),
        Failpoint("seal.drafting", Before("os:fsync"), (DEATH, FULL), 4),
        Failpoint("seal.renaming", Before("os:replace"), (DEATH, FULL), 2),
        Failpoint("seal.file_kept", After(CLOSING + "_keep_file"), (DEATH, LOST), 2),
        Failpoint("seal.files_kept", Before(CLOSING + "_price_snapshot"), (DEATH, LOST)),
        Failpoint("seal.recorded", Before(CLOSING + "_check_carry"), (DEATH, LOST)),
        Failpoint("epoch.written", Inside("market_events", "INSERT"), IN_DATABASE, APPENDS),
        Failpoint("epoch.committed", Answered("market_events", "INSERT"), (DEATH, LOST), APPENDS),
        Failpoint("mature.file_read", After(CLOSING + "sealed_settlement"), (DEATH, LOST)),
    )

    def found(self) -> None:
        ledger, connection = self.ledger, self.observer
        market = Market(ledger, connection)
        market.found("north", gpus=1)
        market.do(
            START_US,
            PublishPolicy(
                version=1,
                epoch_length_us=DAY_US,
                segments=(EmissionSegment(1, 1_000, 1_000 * EMISSION),),
                hard_cap=token(1_000 * EMISSION),
                compute_ppm=700_000,
                availability_ppm=200_000,
                treasury_ppm=100_000,
                compute_base="gpu_time",
                holdback_epochs=1,
                effective_from_epoch=1,
                by="operator",
                at_us=START_US,
            ),
            OpenEpoch(epoch=1, start_us=START_US, at_us=START_US),
        )
        self.nodes = market.nodes
        self.round = 1  # so that each life matures the rewards of an epoch before
        self.prepare()
        self.act(lambda _told: None)

    def prepare(self) -> None:
        """An hour that a renter used, and the day is over."""
        start_us = self._end_us - DAY_US
        ledger, connection = self.ledger, self.observer
        market = Market(ledger, connection, self.nodes)
        lease_id = market.lease(str(self.round), "north", term_us=HOUR_US, at_us=start_us)
        market.report("north", lease_id, start_us, start_us + HOUR_US)
        accrue(ledger, connection, [lease_id], self._end_us)
        assert market.state(lease_id).status == "settled"

    def act(self, tell: Tell) -> None:
        with (
            pytest.MonkeyPatch.context() as patch,
            self.open_ledger() as ledger,
            self.connect() as connection,
        ):
            patch.setattr(epochs, "CHUNK_MAX", 1)
            waits = closing.settle_due(
                ledger, connection, self._end_us + 1, "job", data_dir=self.folder
            )
            assert not waits, waits
            tell([epoch_path(self.folder, self.round).read_bytes().hex()])

    def check(self, told: list[Any], again: list[Any]) -> None:
        assert told in ([], again), "a file that was sealed changed"
        ledger = self.ledger
        state = closing.epoch_state(ledger, self.round)
        assert state.status == "credited"
        assert state.sealed is not None
        assert state.sealed.chunks == len(state.chunk_hashes) == 2
        before = closing.epoch_state(ledger, self.round - 1)
        assert (before.status, before.matured_count) == ("settled", 2)
        data = epoch_path(self.folder, self.round).read_bytes()
        assert sha256(data).hexdigest() == state.sealed.file_sha256
        clients = clients_path(self.folder, self.round).read_bytes()
        assert sha256(clients).hexdigest() == state.sealed.clients_sha256
        assert closing.epoch_state(ledger, self.round + 1).status == "open"
        treasury = ledger.books.balance("party:treasury:matured")
        assert treasury == (self.round - 1) * EMISSION // 10
        owner = ledger.books.balance(f"party:{OWNER}:matured")
        assert owner == (self.round - 1) * EMISSION * 7 // 10
        assert ledger.books.faults() == []

    @property
    def _end_us(self) -> int:
        return START_US + self.round * DAY_US
