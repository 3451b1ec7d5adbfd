"""What was deployed is what the file says, and any one thing out of place is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contracts.abi import artifact
from contracts.chain import Call, Chain
from contracts.deployment import (
    ADMIN_DELAY_S,
    DeploymentInvalid,
    check_deployment,
    decode,
    deploy_all,
    encode,
    role_id,
)
from contracts.devnet import Devnet
from contracts.tally import Tally
from tests.contracts.stage import GENESIS_S, Stage, account, roles_of, terms, wallets


def test_a_fresh_set_reads_back_as_written(stage: Stage) -> None:
    assert check_deployment(stage.chain, stage.at) == []


def test_the_deployment_file_comes_back_equal(stage: Stage) -> None:
    assert decode(encode(stage.at)) == stage.at
    with pytest.raises(DeploymentInvalid):
        decode(b'{"format": "something else"}')
    with pytest.raises(DeploymentInvalid):
        decode(encode(stage.at).replace(b'"timelock_s"', b'"timelock"'))


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("timelock_s", 1, "RewardsDistributor timelock"),
        ("epoch_length_s", 1, "EmissionController epochLength"),
        ("genesis_s", 1, "EmissionController genesis"),
        ("recycle_cap", 1, "EmissionController recycleCap"),
        ("move_max_bps", 1, "CreditBurner maxMoveBps"),
        ("quote_life_max_s", 1, "CreditBurner maxQuoteLife"),
    ],
)
def test_one_wrong_term_is_named(stage: Stage, field: str, value: int, name: str) -> None:
    changes: dict[str, Any] = {field: value}
    wrong = replace(stage.at, terms=replace(stage.at.terms, **changes))
    assert [found.name for found in check_deployment(stage.chain, wrong)] == [name]


def test_a_shorter_schedule_than_promised_is_named(stage: Stage) -> None:
    wrong = replace(stage.at, terms=replace(stage.at.terms, period_caps=(1, 2)))
    names = [found.name for found in check_deployment(stage.chain, wrong)]
    assert names == ["EmissionController cap(1,)", "EmissionController cap(366,)"]


def test_one_wrong_role_is_named(stage: Stage) -> None:
    who = stage.address("other")
    data = artifact("EmissionController").call_data("grantRole", role_id("EMITTER_ROLE"), who)
    stage.do("admin", Call(stage.at.emission, data))
    (found,) = check_deployment(stage.chain, stage.at)
    assert found.name == "EmissionController EMITTER_ROLE"
    assert who.lower() in found.got


def test_a_role_that_was_taken_away_is_named(stage: Stage) -> None:
    data = artifact("CreditBurner").call_data(
        "revokeRole", role_id("GUARDIAN_ROLE"), stage.address("guardian")
    )
    stage.do("admin", Call(stage.at.burner, data))
    (found,) = check_deployment(stage.chain, stage.at)
    assert (found.name, found.got) == ("CreditBurner GUARDIAN_ROLE", [])


def test_foreign_code_at_our_address_is_named(stage: Stage) -> None:
    (found,) = check_deployment(stage.chain, replace(stage.at, burner=stage.at.emission))
    assert found.name == "CreditBurner code"
    (found,) = check_deployment(stage.chain, replace(stage.at, token=account(0xEE)))
    assert (found.name, found.got) == ("TallyToken code", "no code")


def test_another_chain_is_named(stage: Stage) -> None:
    (found,) = check_deployment(stage.chain, replace(stage.at, chain_id=1))
    assert found.name == "chain id"


def test_an_admin_other_than_the_deployer_takes_over_in_a_second_step() -> None:
    with Devnet(clock=lambda: GENESIS_S) as devnet:
        chain, people = Chain(devnet.w3), wallets(devnet)
        roles = replace(roles_of(people), admin=people["other"].address)
        made = deploy_all(chain, people["admin"], roles, terms(), wait_until=devnet.travel_to)
        assert {found.name for found in check_deployment(chain, made)} == {
            f"{contract} {what}"
            for contract in ("RewardsDistributor", "EmissionController", "CreditBurner")
            for what in ("defaultAdmin", "DEFAULT_ADMIN_ROLE")
        }
        devnet.travel_to(chain.head().time_s + ADMIN_DELAY_S + 1)
        for contract in ("RewardsDistributor", "EmissionController", "CreditBurner"):
            data = artifact(contract).call_data("acceptDefaultAdminTransfer")
            chain.execute(people["other"], Call(made.address(contract), data))
        assert check_deployment(chain, made) == []


def test_a_replaced_guardian_is_right_once_the_file_says_so(stage: Stage) -> None:
    new = stage.address("other")
    for contract in ("RewardsDistributor", "EmissionController", "CreditBurner"):
        for function, who in (("grantRole", new), ("revokeRole", stage.address("guardian"))):
            data = artifact(contract).call_data(function, role_id("GUARDIAN_ROLE"), who)
            stage.do("admin", Call(stage.at.address(contract), data))
    now = replace(stage.at, roles=replace(stage.at.roles, guardian=new))
    assert check_deployment(stage.chain, now) == []
    Tally(stage.chain, now)
