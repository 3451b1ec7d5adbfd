"""Every "no" of the four contracts, by its selector and with what it tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import contracts
from contracts import pool_controller
from contracts.abi import CONTRACTS, POOL_CONTROLLER, artifact
from contracts.chain import Call
from contracts.deployment import ADMIN_ROLE, ZERO_ADDRESS, role_id
from contracts.payout_tree import keccak256
from contracts.tally import TOKEN_UNIT
from tests.contracts.stage import (
    ACCOUNT_REF,
    CAP,
    DAY_S,
    FILE_HASH,
    GENESIS_S,
    PRICE,
    RECYCLE_CAP,
    TIMELOCK_S,
    Stage,
    account,
)

Scene = Callable[[Stage], tuple[str, Call, dict[str, Any] | None]]
SCENES: list[tuple[str, Scene]] = []


def refuses(error: str) -> Callable[[Scene], Scene]:
    def keep(scene: Scene) -> Scene:
        SCENES.append((error, scene))
        return scene

    return keep


@refuses("ZeroAddress")
def distributor_without_asset(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    arguments = (ZERO_ADDRESS, stage.address("admin"), 0, TIMELOCK_S)
    call = Call("", artifact("RewardsDistributor").deploy_data(*arguments))
    return "admin", call, {"parameter": "asset"}


@refuses("ZeroAddress")
def emission_without_receiver(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    where = (stage.at.token, ZERO_ADDRESS, stage.address("admin"), 0)
    call = Call("", artifact("EmissionController").deploy_data(*where, GENESIS_S, DAY_S, 1, 0, [1]))
    return "admin", call, {"parameter": "receiver"}


@refuses("ZeroAddress")
def emission_without_token(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    where = (ZERO_ADDRESS, stage.at.distributor, stage.address("admin"), 0)
    call = Call("", artifact("EmissionController").deploy_data(*where, GENESIS_S, DAY_S, 1, 0, [1]))
    return "admin", call, {"parameter": "token"}


@refuses("ZeroAddress")
def burner_without_token(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    where = (ZERO_ADDRESS, stage.at.emission, stage.address("admin"), 0)
    call = Call("", artifact("CreditBurner").deploy_data(*where, 600, 2_000, 60))
    return "admin", call, {"parameter": "token"}


@refuses("ZeroAddress")
def burner_without_emission(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    where = (stage.at.token, ZERO_ADDRESS, stage.address("admin"), 0)
    call = Call("", artifact("CreditBurner").deploy_data(*where, 600, 2_000, 60))
    return "admin", call, {"parameter": "emission"}


@refuses("AccessControlInvalidDefaultAdmin")
def token_without_admin(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    call = Call("", artifact("TallyToken").deploy_data(ZERO_ADDRESS, 0, stage.address("admin"), 1))
    return "admin", call, {"defaultAdmin": ZERO_ADDRESS}


@refuses("BadSchedule")
def schedule_without_caps(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    where = (stage.at.token, stage.at.distributor, stage.address("admin"), 0)
    call = Call("", artifact("EmissionController").deploy_data(*where, GENESIS_S, DAY_S, 1, 0, []))
    return "admin", call, {"epochLength": DAY_S, "epochsPerPeriod": 1, "periods": 0}


@refuses("EpochOutOfOrder")
def epoch_skipped(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.close_epoch(2)
    return "emitter", stage.tally.mint_epoch(2, 1, FILE_HASH), {"expected": 1, "got": 2}


@refuses("EpochOutOfOrder")
def epoch_minted_twice(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 5)
    return "emitter", stage.tally.mint_epoch(1, 5, FILE_HASH), {"expected": 2, "got": 1}


@refuses("EpochNotClosed")
def epoch_still_running(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.devnet.travel_to(GENESIS_S + DAY_S - 1)
    told = {"closesAt": GENESIS_S + DAY_S, "nowS": GENESIS_S + DAY_S - 1}
    return "emitter", stage.tally.mint_epoch(1, 1, FILE_HASH), told


@refuses("CapExceeded")
def mint_above_the_schedule(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.close_epoch(1)
    call = stage.tally.mint_epoch(1, CAP + 1, FILE_HASH)
    return "emitter", call, {"ceiling": CAP, "got": CAP + 1}


@refuses("CapExceeded")
def mint_above_the_recycle_cap(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.give_tokens(5_000)
    stage.burn(5_000)
    stage.close_epoch(1)
    call = stage.tally.mint_epoch(1, CAP + RECYCLE_CAP + 1, FILE_HASH)
    return "emitter", call, {"ceiling": CAP + RECYCLE_CAP, "got": CAP + RECYCLE_CAP + 1}


@refuses("AccessControlUnauthorizedAccount")
def mint_by_a_stranger(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    data = artifact("TallyToken").call_data("mint", stage.address("admin"), 1)
    told = {"account": stage.address("admin").lower(), "neededRole": role_id("MINTER_ROLE")}
    return "admin", Call(stage.at.token, data), told


@refuses("AccessControlUnauthorizedAccount")
def a_second_minter_appointed(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    who = stage.address("admin")
    data = artifact("TallyToken").call_data("grantRole", role_id("MINTER_ROLE"), who)
    told = {"account": who.lower(), "neededRole": ADMIN_ROLE}
    return "admin", Call(stage.at.token, data), told


@refuses("AccessControlUnauthorizedAccount")
def an_epoch_minted_by_the_proposer(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "proposer", stage.tally.mint_epoch(1, 1, FILE_HASH), None


@refuses("AccessControlUnauthorizedAccount")
def a_root_proposed_by_the_guardian(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "guardian", stage.tally.propose_root(1, FILE_HASH, FILE_HASH, 0), None


@refuses("AccessControlUnauthorizedAccount")
def a_root_vetoed_by_the_proposer(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "proposer", stage.tally.veto_root(FILE_HASH), None


@refuses("AccessControlUnauthorizedAccount")
def a_pause_by_the_admin(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "admin", stage.tally.pause("CreditBurner"), None


@refuses("AccessControlUnauthorizedAccount")
def unpaused_by_the_guardian(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.do("guardian", stage.tally.pause("EmissionController"))
    return "guardian", stage.tally.unpause("EmissionController"), None


@refuses("AccessControlUnauthorizedAccount")
def an_oracle_set_by_the_deployer(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "admin", stage.tally.set_oracle(stage.address("admin"), 1), None


@refuses("AccessControlUnauthorizedAccount")
def a_burn_reported_by_a_holder(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    data = artifact("EmissionController").call_data("recordBurn", 10**18)
    return "user", Call(stage.at.emission, data), None


def _purchase(stage: Stage, amount: int = TOKEN_UNIT, **options: Any) -> Call:
    price = options.pop("price", None) or stage.quote()
    return stage.tally.burn_for_credits(amount, price, account_ref=ACCOUNT_REF, **options)


@refuses("ZeroAmount")
def nothing_burned(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", _purchase(stage, 0), {}


@refuses("QuoteNotLive")
def quote_from_the_future(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", _purchase(stage, price=stage.quote(age_s=-10)), None


@refuses("QuoteNotLive")
def quote_run_out(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", _purchase(stage, price=stage.quote(age_s=301)), None


@refuses("QuoteNotLive")
def quote_living_too_long(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    now = stage.now_s
    told = {"validAfter": now - 5, "validUntil": now + 596, "lifeMax": 600, "nowS": now}
    return "user", _purchase(stage, price=stage.quote(life_s=601)), told


@refuses("QuoteStale")
def round_already_over(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.give_tokens()
    stage.burn(1, stage.quote(7))
    told = {"lastRound": 7, "lastPrice": PRICE, "round": 6, "price": PRICE}
    return "user", _purchase(stage, price=stage.quote(6)), told


@refuses("QuoteStale")
def second_price_in_a_round(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.give_tokens()
    stage.burn(1)
    told = {"lastRound": 1, "lastPrice": PRICE, "round": 1, "price": PRICE + 1}
    return "user", _purchase(stage, price=stage.quote(1, PRICE + 1)), told


@refuses("QuoteBadSigner")
def quote_by_another_key(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    told = {"oracle": stage.address("oracle").lower()}
    return "user", _purchase(stage, price=stage.quote(signer=stage.people["other"])), told


@refuses("QuoteBadSigner")
def no_oracle_appointed(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.do("oracle_admin", stage.tally.set_oracle(ZERO_ADDRESS, PRICE))
    return "user", _purchase(stage), {"oracle": ZERO_ADDRESS}


@refuses("RoundTooSoon")
def rounds_in_a_hurry(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.give_tokens()
    stage.burn(1)
    return "user", _purchase(stage, price=stage.quote(2)), None


@refuses("PriceMoveTooLarge")
def price_jump(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    told = {"last": PRICE, "moveMax": PRICE // 5, "got": PRICE * 6 // 5 + 1}
    return "user", _purchase(stage, price=stage.quote(1, PRICE * 6 // 5 + 1)), told


@refuses("PriceMoveTooLarge")
def price_drop(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", _purchase(stage, price=stage.quote(1, PRICE * 4 // 5 - 1)), None


@refuses("PriceMoveTooLarge")
def price_jump_after_a_year_without_purchases(
    stage: Stage,
) -> tuple[str, Call, dict[str, Any] | None]:
    """Thirty days widen the move, and no more."""
    stage.wait(365 * DAY_S)
    most = PRICE + PRICE * 31 // 5
    told = {"last": PRICE, "moveMax": most - PRICE, "got": most + 1}
    return "user", _purchase(stage, price=stage.quote(1, most + 1)), told


@refuses("PriceMoveTooLarge")
def price_jump_after_a_new_oracle_in_a_quiet_month(
    stage: Stage,
) -> tuple[str, Call, dict[str, Any] | None]:
    """The age of the new anchor counts, not that of the last round."""
    stage.wait(30 * DAY_S)
    oracle = stage.address("oracle")
    stage.do("oracle_admin", stage.tally.set_oracle(oracle, PRICE))
    return "user", _purchase(stage, price=stage.quote(1, PRICE * 6 // 5 + 1)), None


@refuses("SlippageExceeded")
def fewer_credits_than_wanted(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    told = {"minCredits": PRICE + 1, "got": PRICE}
    return "user", _purchase(stage, credits_min=PRICE + 1), told


@refuses("SlippageExceeded")
def tokens_worth_less_than_one_unit(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", _purchase(stage, 49), {"minCredits": 0, "got": 0}


@refuses("ERC20InsufficientAllowance")
def burn_without_approval(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", _purchase(stage), None


@refuses("EnforcedPause")
def purchase_while_paused(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.do("guardian", stage.tally.pause("CreditBurner"))
    return "user", _purchase(stage), {}


@refuses("EnforcedPause")
def mint_while_paused(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.do("guardian", stage.tally.pause("EmissionController"))
    return "emitter", stage.tally.mint_epoch(1, 0, FILE_HASH), {}


@refuses("EnforcedPause")
def accept_while_paused(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    stage.propose({account(1): 100})
    stage.wait(TIMELOCK_S)
    stage.do("guardian", stage.tally.pause("RewardsDistributor"))
    return "relay", stage.tally.accept_root(), {}


@refuses("EnforcedPause")
def claim_while_paused(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.do("guardian", stage.tally.pause("RewardsDistributor"))
    return "relay", stage.tally.claim(account(1), 1, []), {}


@refuses("PendingExists")
def root_replaced_while_it_waits(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    stage.propose({account(1): 100})
    return "proposer", stage.tally.propose_root(1, FILE_HASH, FILE_HASH, 100), {"seq": 1}


@refuses("SeqNotNext")
def root_number_skipped(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    call = stage.tally.propose_root(2, FILE_HASH, FILE_HASH, 0)
    return "proposer", call, {"expected": 1, "got": 2}


@refuses("EmptyRoot")
def root_of_zeros(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "proposer", stage.tally.propose_root(1, bytes(32), FILE_HASH, 0), {}


@refuses("CommittedShrank")
def committed_less_than_before(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    stage.publish({account(1): 100})
    call = stage.tally.propose_root(2, FILE_HASH, FILE_HASH, 99)
    return "proposer", call, {"previous": 100, "got": 99}


@refuses("Underfunded")
def root_without_tokens_behind_it(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    call = stage.tally.propose_root(1, FILE_HASH, FILE_HASH, 101)
    return "proposer", call, {"needed": 101, "balance": 100}


@refuses("NoPending")
def nothing_to_accept(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "relay", stage.tally.accept_root(), {}


@refuses("NoPending")
def nothing_to_veto(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "guardian", stage.tally.veto_root(FILE_HASH), {}


@refuses("TimelockRunning")
def accepted_a_second_early(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    stage.propose({account(1): 100})
    valid_at_s = stage.now_s + TIMELOCK_S
    stage.wait(TIMELOCK_S - 1)
    return "relay", stage.tally.accept_root(), {"validAt": valid_at_s, "nowS": valid_at_s - 1}


@refuses("BadProof")
def one_unit_more_than_the_leaf(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    tree = stage.publish({account(1): 60, account(2): 40})
    call = stage.tally.claim(account(1), 61, tree.proof(0))
    return "relay", call, {"root": tree.root, "account": account(1), "cumulative": 61}


@refuses("BadProof")
def an_inner_node_as_a_leaf(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    tree = stage.publish({account(n): 25 for n in range(1, 5)})
    return "relay", stage.tally.claim(account(1), 25, tree.proof(0)[1:]), None


@refuses("NothingToClaim")
def claimed_twice(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    tree = stage.publish({account(1): 100})
    stage.do("relay", stage.claim_call(tree, 0))
    return "relay", stage.claim_call(tree, 0), {"claimed": 100, "cumulative": 100}


@refuses("OverCommitted")
def lying_root_pays_no_more_than_was_committed(
    stage: Stage,
) -> tuple[str, Call, dict[str, Any] | None]:
    stage.mint(1, 100)
    tree = stage.tree({account(1): 101})
    stage.do("proposer", stage.tally.propose_root(1, tree.root, FILE_HASH, 100))
    stage.wait(TIMELOCK_S)
    stage.do("relay", stage.tally.accept_root())
    return "relay", stage.claim_call(tree, 0), {"committed": 100, "total": 101}


@refuses("LengthMismatch")
def claim_lists_of_different_length(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    data = artifact("RewardsDistributor").call_data("claimMany", [account(1)], [1, 2], [[]])
    told = {"accounts": 1, "cumulatives": 2, "proofs": 1}
    return "relay", Call(stage.at.distributor, data), told


ID, KIND = b"\x01" * 32, b"licence".ljust(32, b"\0")


def controller(stage: Stage) -> str:
    """A pool's controller whose roles the admin holds."""
    admin = stage.people["admin"]
    return pool_controller.deploy(
        stage.chain, admin, registrar=admin.address, anchorer=admin.address
    )


def controller_call(address: str, function: str, *arguments: Any) -> Call:
    return Call(address, artifact(POOL_CONTROLLER).call_data(function, *arguments))


@refuses("AlreadyRegistered")
def a_component_registered_twice(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    call = controller_call(controller(stage), "registerComponent", ID, KIND)
    stage.do("admin", call)
    return "admin", call, {"componentId": ID}


@refuses("EmptyComponent")
def a_component_without_a_kind(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "admin", controller_call(controller(stage), "registerComponent", ID, bytes(32)), {}


@refuses("NotRegistered")
def an_unknown_component_that_retires(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "admin", controller_call(controller(stage), "retireComponent", ID), {"componentId": ID}


@refuses("NotRegistered")
def a_component_that_retires_twice(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    address = controller(stage)
    stage.do("admin", controller_call(address, "registerComponent", ID, KIND))
    call = controller_call(address, "retireComponent", ID)
    stage.do("admin", call)
    return "admin", call, {"componentId": ID}


@refuses("SeqNotIncreasing")
def heads_at_the_position_of_the_last(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    call = controller_call(controller(stage), "anchorHeads", 7, ID, KIND)
    stage.do("admin", call)
    return "admin", call, {"last": 7, "got": 7}


@refuses("AccessControlUnauthorizedAccount")
def heads_by_a_stranger(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", controller_call(controller(stage), "anchorHeads", 7, ID, KIND), None


@refuses("AccessControlUnauthorizedAccount")
def a_component_by_a_stranger(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", controller_call(controller(stage), "registerComponent", ID, KIND), None


@refuses("AccessControlUnauthorizedAccount")
def a_metadata_hash_by_a_stranger(stage: Stage) -> tuple[str, Call, dict[str, Any] | None]:
    return "user", controller_call(controller(stage), "setMetadataHash", ID), None


@pytest.mark.parametrize(
    ("error", "scene"), SCENES, ids=[scene.__name__.replace("_", " ") for _, scene in SCENES]
)
def test_the_contract_refuses(stage: Stage, error: str, scene: Scene) -> None:
    who, call, told = scene(stage)
    refused = stage.refuse(who, call)
    assert refused.error == error
    assert refused.data[:4] == _selector(error)
    if told is not None:
        assert refused.arguments == told


def test_every_error_of_our_sources_has_a_scene() -> None:
    sources = (Path(contracts.__file__).parent / "src").glob("*.sol")
    declared = {name for path in sources for name in re.findall(r"error (\w+)\(", path.read_text())}
    assert declared <= {error for error, _ in SCENES}


def _selector(error: str) -> bytes:
    items = {
        item["name"]: item
        for name in (*CONTRACTS, POOL_CONTROLLER)
        for item in artifact(name).abi
        if item["type"] == "error"
    }
    kinds = ",".join(field["type"] for field in items[error]["inputs"])
    return keccak256(f"{error}({kinds})".encode())[:4]
