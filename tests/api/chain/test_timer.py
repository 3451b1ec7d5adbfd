"""From a burn on chain to a confirmed claim, on a real database and a real machine, and every way
in which it is interrupted, repeated, vetoed or lied to.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.chain import payout_leaves
from api.chain import timer as chain_jobs
from api.chain.timer import NETWORK_BURN_REF, Stopped, reconcile
from api.epochs import closing as settlement
from contracts import outbox as outboxes
from contracts import payout_scripts
from contracts.abi import ContractRefused
from contracts.chain import Chain
from contracts.deployment import Deployment, Difference
from contracts.devnet import Devnet
from contracts.outbox import State
from contracts.payout_scripts import NothingToClaim, PayoutMismatch
from contracts.scanner import FinalityBroken
from contracts.tally import TOKEN_UNIT
from domain.chain import burn as burns
from domain.chain.payout_root import stream_of as payout_stream
from domain.chain.reasons import ChainReason
from domain.chain.transaction import stream_of
from domain.duration import SECOND_US
from domain.epochs.reasons import EpochsReason
from domain.governance.breakers import SetBreaker
from domain.governance.grant import Milestone, OpenGrant, ProposeGrant
from domain.governance.grant import stream_of as grant_stream
from domain.money import token
from domain.parties.account import WALLET_DELAY_US
from domain.refusal import Refused
from ledger.beside import chain_store
from ledger.log.handle import Ledger
from tests.conftest import Databases, fresh
from tests.contracts import stage
from tests.scenes import chain as chain_scene
from tests.scenes.chain import EMISSION, NEW_WALLET, OWNER, OWNER_WALLET, RENTER, TIMELOCK_S, Scene
from tests.scenes.governors import ANNA, enrolling

COMPUTE, TREASURY = EMISSION * 7 // 10, EMISSION // 10


@pytest.fixture(scope="module")
def chain() -> Generator[tuple[Devnet, Deployment], None, None]:
    with chain_scene.deployed() as made:
        yield made


@pytest.fixture
def scene(
    database: str, chain: tuple[Devnet, Deployment], tmp_path: Path
) -> Generator[Scene, None, None]:
    with chain_scene.scene(database, chain, tmp_path) as made:
        made.found()
        yield made


def work(scene: Scene, epoch: int = 1) -> None:
    """A renter burns tokens and uses the credits; the epoch ends and is settled."""
    scene.buy(100)
    scene.jobs().step(scene.now_us)
    scene.lease(f"epoch_{epoch}", "burn", 3_600)
    scene.end_epoch(epoch)
    scene.jobs().step(scene.now_us)
    assert scene.settle_epochs() == ()


def publish(scene: Scene) -> None:
    """Epoch 1 is worked, minted, proposed and accepted."""
    scene.link()
    work(scene)
    scene.jobs().step(scene.now_us)
    scene.travel(TIMELOCK_S)
    scene.jobs().step(scene.now_us)
    assert status(scene) == "accepted"


@dataclass(frozen=True)
class Kept:
    """A scene as it was at a moment: its database, its folder, and a chain that stands there."""

    database: str
    folder: Path
    chain: tuple[Devnet, Deployment]


@pytest.fixture(scope="module")
def kept(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Kept, None, None]:
    """The first epoch is published once, in a second or two, for all tests that begin with it. On a
    chain of its own, which only ever goes back to there.
    """
    name, folder = f"published_{os.getpid()}", tmp_path_factory.mktemp("published")
    address = postgres.create_database(name, template=template)
    with chain_scene.deployed() as chain:
        with chain_scene.scene(address, chain, folder, stays=True) as made:
            made.found()
            publish(made)
        yield Kept(name, folder, chain)


@pytest.fixture
def published(postgres: Databases, kept: Kept, tmp_path: Path) -> Generator[Scene, None, None]:
    """A copy of it, of one test alone."""
    shutil.copytree(kept.folder, tmp_path, dirs_exist_ok=True)
    with (
        fresh(postgres, kept.database) as address,
        chain_scene.scene(address, kept.chain, tmp_path) as made,
    ):
        yield made


def status(scene: Scene, epoch: int = 1) -> str:
    return str(scene.ledger.market.load(payout_stream(epoch)).state.status)


def differences(scene: Scene) -> list[Difference]:
    return reconcile(scene.ledger, scene.connection, scene.tally, treasury=scene.treasury.address)


# --- the whole way ---------------------------------------------------------------------------


def test_from_a_burn_to_a_confirmed_claim(scene: Scene) -> None:
    scene.link()
    work(scene)
    report = scene.jobs().step(scene.now_us)
    assert status(scene) == "proposed"
    assert report.waiting == [f"accept/1: {TIMELOCK_S} s of the timelock are left"]
    with pytest.raises(ContractRefused, match="TimelockRunning"):
        payout_scripts.accept(scene.payout(1), scene.tally, scene.sender())
    scene.travel(TIMELOCK_S)
    scene.jobs().step(scene.now_us)
    assert status(scene) == "accepted"
    assert scene.claim(1, OWNER_WALLET).state is State.FINAL
    assert scene.tally.balance(OWNER_WALLET) == COMPUTE
    scene.jobs().step(scene.now_us)
    assert scene.balance(f"party:{OWNER}:matured") == 0
    assert scene.balance("chain:distributor") == EMISSION - COMPUTE
    assert differences(scene) == []
    assert scene.ledger.books.books_balanced()
    assert scene.facts("payout.", "epoch.mint") == [
        "epoch.mint_confirmed.v1",
        "payout.root_built.v1",
        "payout.root_proposed.v1",
        "payout.root_accepted.v1",
        "payout.confirmed.v1",
    ]


def test_the_life_of_a_transaction_is_recorded_in_order(published: Scene) -> None:
    for purpose in ("mint/1", "propose/1"):
        facts = published.ledger.market.read_stream(stream_of(purpose))
        assert [recorded.name.split(".")[1] for recorded in facts] == [
            "intended",
            "signed",
            "broadcast",
            "mined",
            "finalized",
        ]
    names = published.facts("chain_tx.", "epoch.mint", "payout.")
    assert names[4:7] == [
        "chain_tx.finalized.v1",
        "epoch.mint_confirmed.v1",
        "payout.root_built.v1",
    ]


def test_two_epochs_pay_the_difference(published: Scene) -> None:
    published.claim(1, OWNER_WALLET)
    published.lease("more", "burn", 3_600)  # whatever is recorded before the cut is of the epoch
    published.jobs().step(published.now_us)
    published.settle_epochs()
    published.jobs().step(published.now_us)
    published.travel(TIMELOCK_S)
    published.jobs().step(published.now_us)
    assert status(published, 2) == "accepted"
    payout = published.payout(2)
    assert payout.seq == 2
    assert payout.previous_root == published.payout(1).root
    assert published.claim(2, OWNER_WALLET).state is State.FINAL
    assert published.tally.balance(OWNER_WALLET) == 2 * COMPUTE
    published.jobs().step(published.now_us)
    assert published.balance(f"party:{OWNER}:matured") == 0
    assert differences(published) == []


def test_nobody_has_a_leaf_before_they_link_a_wallet(scene: Scene) -> None:
    work(scene)
    scene.jobs().step(scene.now_us)
    treasury = scene.treasury.address.lower()
    assert [leaf.account for leaf in scene.payout(1).leaves()] == [treasury]
    assert scene.payout(1).committed == TREASURY


def test_the_treasury_claims_like_anybody(published: Scene) -> None:
    published.claim(1, published.treasury.address)
    published.jobs().step(published.now_us)
    assert published.balance("party:treasury:matured") == 0
    assert differences(published) == []


def test_the_treasury_claims_what_its_leaf_promised_before_a_grant_set_it_aside(
    published: Scene,
) -> None:
    """Else one grant would stop every final event after the treasury's next claim."""
    total = token(TREASURY // 2)
    at: dict[str, Any] = {"grant_id": "grant_a", "at_us": published.now_us}
    work_done = (Milestone("all-of-it", 1_000_000),)
    published.handle(enrolling(ANNA, published.now_us))
    published.handle(
        ProposeGrant(account_id=OWNER, total=total, milestones=work_done, by="anna", **at)
    )
    subject = published.ledger.world().state(grant_stream("grant_a")).ballots()[0][0]
    published.handle(OpenGrant(vote=ANNA.vote(subject), key_id="key_b", by="boris", **at))
    published.claim(1, published.treasury.address)
    published.claim(1, OWNER_WALLET)
    published.jobs().step(published.now_us)
    assert published.balance("party:treasury:matured") == 0
    assert (
        published.balance("chain:treasury")
        == published.balance("grant:grant_a:locked")
        == total.units
    )
    assert published.balance(f"party:{OWNER}:matured") == 0
    assert differences(published) == []
    assert published.ledger.books.books_balanced()


def test_a_new_wallet_gets_what_the_old_one_was_not_promised(published: Scene) -> None:
    published.link(NEW_WALLET, waited_us=0)
    published.travel(WALLET_DELAY_US // SECOND_US)
    published.lease("again", "burn", 3_600)
    published.jobs().step(published.now_us)
    published.settle_epochs()
    for _ in range(7):  # several epochs are over; their roots go one after the other
        published.jobs().step(published.now_us)
        published.travel(TIMELOCK_S)
    epoch = 2
    payout = published.payout(epoch)
    old, new = payout.leaf(OWNER_WALLET), payout.leaf(NEW_WALLET)
    assert old is not None
    assert new is not None
    assert old.total == COMPUTE
    assert old.total + new.total == published.balance(f"party:{OWNER}:matured")
    published.claim(epoch, OWNER_WALLET)
    published.claim(epoch, NEW_WALLET)
    published.jobs().step(published.now_us)
    assert published.balance(f"party:{OWNER}:matured") == 0
    assert differences(published) == []


# --- purchases -------------------------------------------------------------------------------


def test_a_purchase_counts_once_although_it_is_scanned_twice(scene: Scene) -> None:
    scene.buy(100)
    bought = 100 * stage.PRICE
    scene.jobs().step(scene.now_us)
    assert scene.balance(f"party:{RENTER}:burned") == bought
    # The cursor and all that was done is lost: the whole chain is read again.
    for table in ("chain_effect", "chain_observation", "chain_block", "chain_cursor"):
        scene.connection.execute(f"DELETE FROM {table}".encode())
    assert scene.jobs().step(scene.now_us).effects == 1
    assert scene.balance(f"party:{RENTER}:burned") == bought
    assert scene.facts("deposit.credits") == ["deposit.credits_purchased.v1"]
    assert differences(scene) == []


def test_credits_for_nobody_we_know_wait_in_suspense(scene: Scene) -> None:
    scene.buy(5, ref=b"\x01" * 32)
    scene.jobs().step(scene.now_us)
    assert scene.balance("network:suspense") == 5 * stage.PRICE
    assert differences(scene) == []


def test_a_stranger_cannot_pass_for_a_burn_of_the_network(scene: Scene) -> None:
    scene.buy(5, ref=NETWORK_BURN_REF)
    scene.jobs().step(scene.now_us)
    assert scene.balance("network:suspense") == 5 * stage.PRICE


# --- the network's own burns -----------------------------------------------------------------


def charged(scene: Scene) -> int:
    """A cash lease whose tariff burns; the credits that wait to be burned."""
    scene.with_burns = True
    scene.deposit(100)
    scene.lease("cash", "cash", 3_600)
    due = scene.balance("network:burn_due")
    assert due > 0
    tokens = 1_000 * TOKEN_UNIT
    scene.stage.do("admin", scene.tally.transfer(scene.treasury.address, tokens))
    return due


def test_what_was_charged_to_be_burned_is_burned_once(scene: Scene) -> None:
    due = charged(scene)
    scene.jobs().step(scene.now_us)
    scene.jobs().step(scene.now_us)
    assert scene.balance("network:burn_due") == 0
    tokens = -(-due * TOKEN_UNIT // stage.PRICE)
    assert scene.balance("recycle:pool") == tokens
    held = scene.tally.balance(scene.treasury.address)
    assert held == 1_000 * TOKEN_UNIT - tokens
    assert scene.facts("burn.") == ["burn.intended.v1", "burn.confirmed.v1"]
    assert differences(scene) == []


def test_with_sources_a_burn_is_at_the_price_of_a_snapshot_or_waits(scene: Scene) -> None:
    due = charged(scene)
    scene.name_sources("a", "b", "c")
    report = scene.jobs().step(scene.now_us)
    assert "burn: no price, too_few_sources" in report.waiting
    assert scene.facts("burn.", "oracle.snapshot") == []
    scene.say_prices(("a", 2_010_000), ("b", 1_990_000), ("c", 2_000_400))
    scene.jobs().step(scene.now_us)
    scene.jobs().step(scene.now_us)
    assert scene.balance("network:burn_due") == 0
    assert scene.facts("burn.", "oracle.snapshot") == [
        "oracle.snapshot_taken.v1",
        "burn.intended.v1",
        "burn.confirmed.v1",
    ]
    intended = scene.ledger.market.load(burns.stream_of(1)).state.intended
    assert (intended.price_snapshot, intended.price_micro_usd) == (1, 2_000_400)
    assert intended.tokens.units == -(-due * TOKEN_UNIT // 2_000_400)
    assert differences(scene) == []


def test_a_burn_whose_price_is_over_fails_and_its_charges_go_into_the_next(scene: Scene) -> None:
    charged(scene)
    jobs = scene.jobs()
    with dying(Outbox_submit, before=True), pytest.raises(Killed):
        jobs.step(scene.now_us)
    assert scene.facts("burn.") == ["burn.intended.v1"]
    scene.stage.give_tokens(1)
    scene.stage.burn(1, scene.stage.quote(2, stage.PRICE + 1))  # the next round has begun
    report = scene.jobs().step(scene.now_us)
    assert any("QuoteStale" in waiting for waiting in report.waiting)
    assert scene.facts("burn.")[:2] == ["burn.intended.v1", "burn.failed.v1"]
    assert scene.balance("network:burn_due") > 0


def test_nothing_is_burned_that_the_treasury_does_not_hold(scene: Scene) -> None:
    scene.with_burns = True
    scene.deposit(100)
    scene.lease("cash", "cash", 3_600)
    report = scene.jobs().step(scene.now_us)
    assert any(waiting.startswith("burn: the wallet holds 0") for waiting in report.waiting)
    assert scene.facts("burn.") == []


def test_charges_paid_by_card_are_not_burned_before_they_are_confirmed(scene: Scene) -> None:
    """Card money may still go back, and a burn never does. Cash of others does not burn for it."""
    scene.with_burns = True
    scene.deposit(100, source="card")
    scene.lease("card", "cash", 3_600)
    due = scene.balance("network:burn_due")
    scene.stage.do("admin", scene.tally.transfer(scene.treasury.address, 1_000 * TOKEN_UNIT))
    scene.jobs().step(scene.now_us)
    assert scene.facts("burn.") == []
    scene.travel(1)
    scene.deposit(100)
    scene.lease("cash", "cash", 3_600)
    scene.jobs().step(scene.now_us)
    scene.jobs().step(scene.now_us)
    assert scene.facts("burn.") == ["burn.intended.v1", "burn.confirmed.v1"]
    assert scene.balance("network:burn_due") == due
    assert scene.balance("world:bank") == 100 * 10**6 - due
    assert scene.ledger.books.books_balanced()


def test_a_burn_ends_where_the_money_of_the_bank_ends(scene: Scene) -> None:
    """E-H2: it was all or nothing, so one charge too many stopped all."""
    scene.with_burns = True
    scene.deposit(100)
    scene.lease("first", "cash", 3_600)
    first = scene.balance("network:burn_due")
    scene.lease("second", "cash", 3_600)
    scene.stage.do("admin", scene.tally.transfer(scene.treasury.address, 1_000 * TOKEN_UNIT))
    bank = "UPDATE account SET units = units + %s WHERE name = 'world:bank'"
    others = first + 1 - scene.balance("world:bank")  # as if others had been paid out of it
    scene.connection.execute(bank, (others,))
    report = scene.jobs().step(scene.now_us)
    assert any(waiting.startswith("burn: the bank holds") for waiting in report.waiting)
    assert scene.balance("network:burn_due") == first
    scene.connection.execute(bank, (-others,))
    scene.jobs().step(scene.now_us)
    scene.jobs().step(scene.now_us)
    assert scene.balance("network:burn_due") == 0
    assert scene.ledger.books.books_balanced()
    assert differences(scene) == []


# --- vetoes and differences ------------------------------------------------------------------


def test_a_vetoed_root_waits_for_an_operator_and_is_proposed_again(scene: Scene) -> None:
    scene.link()
    work(scene)
    scene.jobs().step(scene.now_us)
    for number in (1, 2):
        scene.stage.do("guardian", scene.tally.veto_root(bytes([number] * 32)))
        report = scene.jobs().step(scene.now_us)
        assert status(scene) == "vetoed"
        assert report.waiting == ["root/1: vetoed, an operator decides"]
        assert scene.tally.pending() is None
        scene.jobs().propose_again(1, scene.now_us)
        scene.jobs().step(scene.now_us)
        assert status(scene) == "proposed"
    scene.travel(TIMELOCK_S)
    scene.jobs().step(scene.now_us)
    assert status(scene) == "accepted"
    assert scene.tally.seq() == 1
    assert scene.facts("payout.root_vetoed") == ["payout.root_vetoed.v1"] * 2
    assert differences(scene) == []


def test_only_a_vetoed_root_is_proposed_again(published: Scene) -> None:
    with pytest.raises(Refused) as caught:
        published.jobs().propose_again(1, published.now_us)
    assert caught.value.reason is ChainReason.PAYOUT_STATE


def test_any_difference_stops_proposals_and_nothing_else(scene: Scene) -> None:
    scene.link()
    work(scene)
    other = scene.stage.address("other")
    call = chain_scene.grant(scene.tally, "EmissionController", "EMITTER_ROLE", other)
    scene.stage.do("admin", call)
    report = scene.jobs().step(scene.now_us)
    assert report.differences
    assert status(scene) == "built"
    assert scene.tally.pending() is None
    assert "propose/1: chain and ledger differ" in report.waiting


def test_an_effect_that_was_not_taken_is_a_difference(scene: Scene) -> None:
    scene.jobs().step(scene.now_us)
    assert differences(scene) == []
    scene.buy(1)
    jobs = scene.jobs()
    jobs._scanner.catch_up()
    assert [one.name for one in differences(scene)] == ["effects that the ledger has not taken"]
    jobs.step(scene.now_us)
    assert differences(scene) == []


def test_a_root_that_is_not_ours_stops_the_jobs(scene: Scene) -> None:
    work(scene)
    scene.link()
    root = b"\x05" * 32
    scene.stage.do("proposer", scene.tally.propose_root(1, root, bytes(32), 0))
    with pytest.raises(Stopped, match="not ours"):
        scene.jobs().step(scene.now_us)
    with pytest.raises(Stopped, match="not ours"):
        scene.jobs().step(scene.now_us)


def test_a_mint_by_somebody_else_is_taken_if_it_is_what_was_sealed(scene: Scene) -> None:
    scene.end_epoch(1)
    scene.jobs().step(scene.now_us)
    scene.settle_epochs()
    sealed = settlement.epoch_state(scene.ledger, 1).sealed
    assert sealed is not None
    file_hash = bytes.fromhex(sealed.file_sha256)
    scene.stage.do("emitter", scene.tally.mint_epoch(1, sealed.emission.units, file_hash))
    scene.jobs().step(scene.now_us)
    assert scene.balance("chain:mint_due") == 0
    assert scene.ledger.market.load(stream_of("mint/1")).state.status == "none"


def test_a_mint_of_another_amount_stops_the_jobs(scene: Scene) -> None:
    scene.end_epoch(1)
    scene.jobs().step(scene.now_us)
    scene.settle_epochs()
    scene.stage.do("emitter", scene.tally.mint_epoch(1, 1, bytes(32)))
    with pytest.raises(Refused) as caught:
        scene.jobs().step(scene.now_us)
    assert caught.value.reason is EpochsReason.REWARDS_MISMATCH


def test_something_final_that_disappears_stops_the_jobs(scene: Scene) -> None:
    mark = scene.devnet.snapshot()
    scene.buy(1)
    scene.jobs().step(scene.now_us)
    scene.devnet.revert(mark)
    scene.devnet.mine()
    with pytest.raises(FinalityBroken):
        scene.jobs().step(scene.now_us)


# --- the scripts -----------------------------------------------------------------------------


@pytest.mark.slow("::test_from_a_burn_to_a_confirmed_claim")
def test_an_operator_publishes_with_the_scripts_alone(scene: Scene) -> None:
    scene.link()
    work(scene)
    jobs = scene.jobs()
    with dying(Outbox_submit, before=True, of="propose/1"), pytest.raises(Killed):
        jobs.step(scene.now_us)
    payout, sender = scene.payout(1), scene.sender()
    proposer = scene.stage.people["proposer"]
    of_proposer = payout_scripts.Sender(
        outboxes.Outbox(sender.store, scene.tally.chain, [proposer]), sender.store, proposer.address
    )
    assert payout_scripts.status(payout, scene.tally)["state"] == "unproposed"
    with pytest.raises(PayoutMismatch):
        payout_scripts.claim(payout, scene.tally, sender, OWNER_WALLET)
    for _ in range(2):
        assert payout_scripts.propose(payout, scene.tally, of_proposer).state is State.FINAL
    assert payout_scripts.status(payout, scene.tally)["state"] == "pending"
    scene.travel(TIMELOCK_S)
    for _ in range(2):
        intent = payout_scripts.accept(payout, scene.tally, sender)
        assert payout_scripts.finish(intent, sender, lambda: None, tries=1).state is State.FINAL
    told = payout_scripts.status(payout, scene.tally, OWNER_WALLET)
    assert (told["state"], told["account"]["claimable"]) == ("accepted", str(COMPUTE))
    for _ in range(2):
        assert scene.claim(1, OWNER_WALLET).state is State.FINAL
    told = payout_scripts.status(payout, scene.tally, OWNER_WALLET)
    assert told["account"]["claimable"] == "0"
    json.dumps(told)
    scene.jobs().step(scene.now_us)
    assert status(scene) == "accepted"
    assert scene.balance(f"party:{OWNER}:matured") == 0
    assert differences(scene) == []


def test_what_somebody_else_has_claimed_is_not_claimed_again(published: Scene) -> None:
    payout = published.payout(1)
    leaf = payout.leaf(OWNER_WALLET)
    assert leaf is not None
    published.stage.do("other", published.tally.claim(leaf.account, leaf.total, leaf.proof))
    with pytest.raises(NothingToClaim):
        published.claim(1, OWNER_WALLET)
    with pytest.raises(NothingToClaim):
        published.claim(1, stage.account(0xDEAD))


def test_a_payout_file_of_another_deployment_is_refused(published: Scene) -> None:
    payout = published.payout(1)
    elsewhere = chain_scene.moved(payout, stage.account(0xD))
    with pytest.raises(PayoutMismatch, match="another deployment"):
        payout_scripts.status(elsewhere, published.tally)


# --- killed anywhere -------------------------------------------------------------------------


class Killed(BaseException):
    """The process died here."""


Outbox_submit = (outboxes.Outbox, "submit")
BOUNDARIES: tuple[tuple[Any, str], ...] = (
    (Ledger, "handle"),
    (chain_store, "keep_intent"),
    (chain_store, "mark_told"),
    (chain_store, "advance"),
    (chain_store, "mark_done"),
    (chain_store, "settle"),
    (chain_jobs, "write_durably"),
    (settlement, "_keep_file"),
    (Chain, "send"),
)
"""Everything that leaves a trace: the market log, the tables, the files, the chain."""


@contextmanager
def dying(
    where: tuple[Any, str], *, before: bool, of: str | None = None
) -> Generator[None, None, None]:
    """Dies at the first call (whose first plain argument is `of`), before it or right after."""
    owner, name = where
    real: Callable[..., Any] = getattr(owner, name)

    def dies(*arguments: Any, **named: Any) -> Any:
        if of is not None and of not in arguments:
            return real(*arguments, **named)
        if not before:
            real(*arguments, **named)
        raise Killed

    setattr(owner, name, dies)
    try:
        yield
    finally:
        setattr(owner, name, real)


class Reaper:
    """Kills once before and once after every call that leaves a trace, each in its own life."""

    def __init__(self) -> None:
        self.deaths = 0
        self._died_at: set[tuple[Any, ...]] = set()

    @contextmanager
    def around_all(self) -> Generator[None, None, None]:
        real = {where: getattr(*where) for where in BOUNDARIES}
        for (owner, name), function in real.items():
            setattr(owner, name, self._deadly(name, function))
        try:
            yield
        finally:
            for (owner, name), function in real.items():
                setattr(owner, name, function)

    def _deadly(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            what = (name, *(_name(one) for one in arguments))
            self._die_once(("before", *what))
            answer = real(*arguments, **named)
            self._die_once(("after", *what))
            return answer

        return call

    def _die_once(self, moment: tuple[Any, ...]) -> None:
        if moment not in self._died_at:
            self._died_at.add(moment)
            self.deaths += 1
            raise Killed


def _name(argument: Any) -> str:
    """What stays the same when the same thing is done again after a restart."""
    if isinstance(argument, list | tuple):
        return ",".join(map(_name, argument))
    if isinstance(argument, chain_store.IntentRow):
        return f"{argument.id} {argument.state}"
    told = repr(argument) if isinstance(argument, str | int | bytes | Path) else ""
    parts = [type(argument).__name__, told]
    parts += [str(getattr(argument, name, "")) for name in ("epoch", "intent_id", "tx_hash")]
    return " ".join(parts)


def until_done(scene: Scene, reaper: Reaper, job: Callable[[], Any]) -> None:
    """Run a job, and a new one after each death, until one lives to the end."""
    for _ in range(500):
        try:
            with reaper.around_all():
                job()
        except Killed:
            while scene.jobs_made:
                scene.jobs_made.pop().close()
        else:
            return
    raise AssertionError("no job lives long enough")


def test_killed_before_and_after_all_that_leaves_a_trace_of_a_purchase(scene: Scene) -> None:
    reaper = Reaper()
    scene.link()
    scene.buy(100)
    until_done(scene, reaper, lambda: scene.jobs().step(scene.now_us))
    assert reaper.deaths >= 10
    assert len(scene.facts("deposit.credits")) == 1
    assert differences(scene) == []
    assert scene.ledger.books.books_balanced()


@pytest.mark.slow("::test_killed_before_and_after_all_that_leaves_a_trace_of_a_purchase")
def test_killed_before_and_after_everything_that_leaves_a_trace(scene: Scene) -> None:
    reaper = Reaper()

    def step() -> None:
        scene.jobs().step(scene.now_us)

    scene.link()
    scene.buy(100)
    until_done(scene, reaper, step)
    scene.lease("a", "burn", 3_600)
    charged(scene)
    until_done(scene, reaper, step)
    scene.end_epoch(1)
    until_done(scene, reaper, step)
    until_done(scene, reaper, scene.settle_epochs)
    until_done(scene, reaper, step)
    assert status(scene) == "proposed"
    scene.travel(TIMELOCK_S)
    until_done(scene, reaper, step)
    scene.claim(1, OWNER_WALLET)
    until_done(scene, reaper, step)
    assert reaper.deaths > 100
    assert status(scene) == "accepted"
    assert differences(scene) == []
    assert scene.ledger.books.books_balanced()
    once = scene.facts("payout.", "epoch.mint", "deposit.credits", "burn.", "epoch.sealed")
    assert sorted(once) == sorted(set(once))
    for purpose in ("mint/1", "propose/1", "burn/1"):
        facts = scene.ledger.market.read_stream(stream_of(purpose))
        assert [recorded.name for recorded in facts] == [
            f"chain_tx.{word}.v1"
            for word in ("intended", "signed", "broadcast", "mined", "finalized")
        ]
    assert scene.tally.chain.transaction_count(scene.stage.address("emitter")) == 1
    assert scene.tally.chain.transaction_count(scene.stage.address("proposer")) == 2


def test_a_second_job_beside_the_first_does_nothing_twice(scene: Scene) -> None:
    scene.link()
    work(scene)
    first, second = scene.jobs(), scene.jobs()
    first.step(scene.now_us)
    second.step(scene.now_us)
    assert scene.tally.chain.transaction_count(scene.stage.address("proposer")) == 1
    assert status(scene) == "proposed"


def test_leaves_follow_from_the_log_alone(published: Scene) -> None:
    treasury = published.treasury.address
    leaves = payout_leaves.leaves_of(published.ledger, published.connection, 1, treasury)
    assert leaves is not None
    assert dict(leaves.totals) == {OWNER_WALLET: COMPUTE, treasury.lower(): TREASURY}
    assert payout_leaves.leaves_of(published.ledger, published.connection, 2, treasury) is None


def set_breaker(scene: Scene, breaker: str, limit: int | None) -> None:
    scene.handle(
        SetBreaker(
            breaker=breaker,
            limit=limit,
            window_us=7 * 86_400 * SECOND_US,
            reason="a test",
            by="mem_a",
            at_us=scene.now_us,
        )
    )


def test_a_breaker_holds_up_minting_and_paying_until_its_limit_is_raised(scene: Scene) -> None:
    """Nothing is minted before its epoch is sealed, nor past the limit; each says why it waits."""
    set_breaker(scene, "mint", EMISSION - 1)
    set_breaker(scene, "payout", 1)
    scene.end_epoch(1)
    jobs = scene.jobs()
    jobs.step(scene.now_us)
    assert scene.balance("chain:distributor") == 0, "not sealed yet"
    assert scene.facts("chain.tx_intended", "breaker.") == ["breaker.set.v1"] * 2
    assert scene.settle_epochs() == ()
    for _ in range(2):
        waiting = jobs.step(scene.now_us).waiting
        told = f"breaker_limit: 0 of {EMISSION - 1} have passed, needed {EMISSION}"
        assert waiting == [f"mint/1: {told}"]
    assert scene.facts("breaker.")[2:] == ["breaker.tripped.v1"], "told once"
    assert scene.balance("chain:distributor") == 0
    set_breaker(scene, "mint", EMISSION)
    waiting = jobs.step(scene.now_us).waiting
    assert scene.balance("chain:distributor") == EMISSION
    assert [one.split(":")[0] for one in waiting] == ["payout/1"]
    assert scene.facts("payout.root_proposed") == []
    set_breaker(scene, "payout", None)
    jobs.step(scene.now_us)
    assert scene.facts("payout.root_proposed") == ["payout.root_proposed.v1"]
