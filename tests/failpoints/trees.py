"""The audit trees follow both logs, the head is signed, and the usage log is pinned."""

from __future__ import annotations

from typing import Any, ClassVar

from nacl.signing import SigningKey

from domain.funds.deposit import ConfirmDeposit
from domain.metering.pin import PinUsage, UsagePinned
from domain.money import credit
from ledger.tree import cut, merkle, trees
from ledger.tree.checkpoint import Signer, VerifierKey, open_checkpoint, remembered
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Answered, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.projections.reports import append_reports
from tests.scenes.running_market import RENTER, START_US, Market

SEED, ORIGIN = b"s" * 32, "example.com/failpoints"
DEATH, LOST, FULL = Fault.DEATH, Fault.LOST, Fault.FULL


class Trees(Scene):
    failpoints: ClassVar = (
        Failpoint("trees.leaves_read", After("ledger.tree.trees:_new_leaves"), (DEATH, LOST)),
        Failpoint("trees.tiles_written", Inside("tree_tile", "INSERT"), IN_DATABASE),
        Failpoint("trees.heads_moved", Inside("tree_head", "UPDATE"), IN_DATABASE),
        Failpoint("trees.followed", After("ledger.tree.trees:follow"), (DEATH, LOST), 2),
        Failpoint("head.on_its_way_to_disk", Before("os:fsync"), (DEATH, FULL)),
        Failpoint("head.on_disk", After("ledger.tree.checkpoint:_append"), (DEATH, LOST)),
        Failpoint("head.kept", Inside("checkpoint", "INSERT"), IN_DATABASE),
        Failpoint("head.published", Answered("checkpoint", "INSERT"), (DEATH, LOST)),
        Failpoint("pin.read", After("ledger.tree.cut:pin"), (DEATH, LOST)),
    )

    def found(self) -> None:
        ledger, connection = self.ledger, self.observer
        Market(ledger, connection).found()
        (self.folder / "signed-heads").touch(mode=0o600)

    def prepare(self) -> None:
        ledger = self.ledger
        ledger.handle(
            ConfirmDeposit(
                deposit_id=f"deposit_{self.round}",
                account_id=RENTER,
                source="cash",
                amount=credit(1),
                reference=str(self.round),
                confirmed_by="operator",
                at_us=START_US,
            ),
            key=None,
            now_us=START_US,
        )
        connection = self.observer
        append_reports(connection, nodes=2, reports=1)

    def act(self, tell: Tell) -> None:
        with (
            self.open_ledger() as ledger,
            self.connect() as connection,
            Signer(self.folder / "signed-heads", ORIGIN, SEED) as signer,
        ):
            trees.follow_all(connection)
            tell(["head", trees.publish_checkpoint(connection, signer, START_US)])
            fact = cut.pin(connection).fact(START_US)
            ledger.handle(PinUsage(pin=fact), key=None, now_us=START_US)
            tell(["pin", fact.lanes_root])

    def check(self, told: list[Any], again: list[Any]) -> None:
        key = VerifierKey(ORIGIN, bytes(SigningKey(SEED).verify_key))
        heads = [open_checkpoint(note, key) for what, note in (*told, *again) if what == "head"]
        ledger, connection = self.ledger, self.observer
        trees.follow_all(connection)
        for head in heads:  # whoever holds a signed head can prove it a part of the log
            assert head.root == _root(connection, head.size)
        reached = trees.head(connection)
        assert reached.root == _root(connection, reached.size)
        signed = trees.latest_checkpoint(connection)
        assert signed is not None
        assert signed[0] == heads[-1].size
        newest = next(remembered((self.folder / "signed-heads").read_text(), ORIGIN))
        assert newest.size == heads[-1].size
        pins = [
            one.fact.lanes_root
            for one in ledger.market.read_facts(0, 10_000)
            if isinstance(one.fact, UsagePinned)
        ]
        assert {root for what, root in (*told, *again) if what == "pin"} <= set(pins)
        assert pins[-1] == cut.pin(connection).lanes_root.hex()


def _root(connection: Any, size: int) -> bytes:
    """Of the first facts, from their stored leaves."""
    rows = connection.execute(
        "SELECT leaf FROM market_events WHERE notification_id <= %s ORDER BY notification_id",
        (size,),
    ).fetchall()
    tree = merkle.Tiles()
    tree.extend(b"".join(bytes(leaf) for (leaf,) in rows))
    root: bytes = tree.root()
    return root
