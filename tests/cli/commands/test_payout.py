"""The payout scripts from the command line: `payout.json`, a chain in a file, and no database."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from eth_account import Account

from contracts import deployment as deployments
from contracts import manifest
from contracts.chain import Chain
from contracts.devnet import Devnet
from contracts.manifest import Payout
from contracts.tally import TOKEN_UNIT, Tally
from tests.contracts.stage import (
    FILE_HASH,
    GENESIS_S,
    PEOPLE,
    TIMELOCK_S,
    Stage,
    account,
    deploy,
    wallets,
)
from tests.scenes.shell import Ran, tallystick

NO_ROOT = "0x" + "00" * 32

PROPOSER, RELAY = PEOPLE.index("proposer") + 1, PEOPLE.index("relay") + 1
TOTALS = {account(0xA1): 300 * TOKEN_UNIT, account(0xA2): 200 * TOKEN_UNIT}


@dataclass(frozen=True)
class Scene:
    """Epoch 1 is minted, and its payout file is written."""

    folder: Path

    @property
    def chain(self) -> Path:
        return self.folder / "chain.sqlite"

    @property
    def payout(self) -> Path:
        return self.folder / "payout.json"

    def run(self, command: str, *arguments: object) -> Ran:
        return tallystick(
            "payout",
            command,
            self.payout,
            "--chain-file",
            self.chain,
            *arguments,
            "--json",
            CHAIN_DEPLOYMENT=self.folder / "deployment.json",
            DATA_DIR=self.folder / "none",
            KEYSTORE_PASSWORD="right",
        )

    def wait(self, seconds: int) -> None:
        with Devnet(self.chain, clock=lambda: GENESIS_S) as devnet:
            devnet.travel_to(Chain(devnet.w3).head().time_s + seconds)


@pytest.fixture(scope="module")
def minted(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Deploying takes most of what a scene costs: it is done once, and each test has a copy."""
    scene = Scene(tmp_path_factory.mktemp("minted"))
    with Devnet(scene.chain, clock=lambda: GENESIS_S) as devnet:
        chain, people = Chain(devnet.w3), wallets(devnet)
        tally = Tally(chain, deploy(devnet, chain, people))
        stage = Stage(devnet, chain, tally, people)
        stage.mint(1, sum(TOTALS.values()))
        deployments.write(scene.folder / "deployment.json", tally.deployment)
        scene.payout.write_bytes(
            manifest.encode(
                Payout(
                    epoch=1,
                    cut="ab" * 32,
                    policy_version=1,
                    log_head="cd" * 32,
                    chain_id=chain.chain_id,
                    distributor=tally.deployment.distributor,
                    asset=tally.deployment.token,
                    seq=1,
                    committed=sum(TOTALS.values()),
                    minted=sum(TOTALS.values()),
                    previous_root=NO_ROOT,
                    manifest=FILE_HASH.hex(),
                    tree=stage.tree(TOTALS),
                )
            )
        )
    return scene


@pytest.fixture
def scene(minted: Scene, tmp_path: Path) -> Scene:
    shutil.copytree(minted.folder, tmp_path, dirs_exist_ok=True)
    return Scene(tmp_path)


def test_a_root_goes_from_the_file_to_a_paid_claim(scene: Scene) -> None:
    assert scene.run("status").document["state"] == "unproposed"
    proposed = scene.run("propose", "--dev-key", PROPOSER)
    assert (proposed.code, proposed.document["state"]) == (0, "final"), proposed.err
    assert scene.run("status").document["state"] == "pending"

    early = scene.run("accept", "--dev-key", RELAY)
    assert (early.code, "TimelockRunning" in early.document["failed"]) == (1, True)
    assert "TimelockRunning" in early.err

    scene.wait(TIMELOCK_S)
    assert scene.run("accept", "--dev-key", RELAY).code == 0
    assert scene.run("status").document["state"] == "accepted"

    payee = account(0xA1)
    claimed = scene.run("claim", "--address", payee, "--dev-key", RELAY)
    assert (claimed.code, claimed.document["state"]) == (0, "final"), claimed.err
    told = scene.run("status", "--address", payee).document
    assert told["account"]["claimed"] == str(TOTALS[payee])
    assert told["account"]["claimable"] == "0"
    assert told["claimed_total"] == str(TOTALS[payee])

    for act in ("propose", "accept"):  # users B28: it said "follows 0x000...", and "None"
        outbox = ("--outbox", scene.chain.with_name(f"another-{act}"))
        again = scene.run(act, "--dev-key", PROPOSER, *outbox)
        assert (again.code, "is accepted already" in again.err) == (1, True), again
        assert "tallystick payout claim" in again.err

    reconciled = scene.run("reconcile")
    assert (reconciled.code, reconciled.document["differences"]) == (0, [])


def test_a_command_run_twice_sends_one_transaction(scene: Scene) -> None:
    first = scene.run("propose", "--dev-key", PROPOSER).document
    assert scene.run("propose", "--dev-key", PROPOSER).document == first
    with Devnet(scene.chain) as devnet:
        proposer = wallets(devnet)["proposer"].address
        assert Chain(devnet.w3).transaction_count(proposer) == 1


def test_only_the_proposer_proposes(scene: Scene) -> None:
    ran = scene.run("propose", "--dev-key", RELAY)
    assert (ran.code, "AccessControl" in ran.document["failed"]) == (1, True)
    assert "AccessControlUnauthorizedAccount" in ran.err
    assert scene.run("status").document["state"] == "unproposed"


def test_an_address_the_root_does_not_name_has_nothing(scene: Scene) -> None:
    ran = scene.run("claim", "--address", account(0xDEAD), "--dev-key", RELAY)
    assert ran.code == 1
    assert "does not name" in ran.err


def test_a_file_that_is_not_canonical_is_not_used(scene: Scene) -> None:
    content = scene.payout.read_bytes()
    scene.payout.write_bytes(content.replace(b'"epoch":1', b'"epoch":1 '))
    refused = scene.run("reconcile")
    assert (refused.code, "not canonical" in refused.document["failed"]) == (2, True)
    assert "do not use this payout file" in refused.err


def test_a_deployment_file_that_names_another_guardian_does_not_reconcile(scene: Scene) -> None:
    file = scene.folder / "deployment.json"
    document = json.loads(file.read_bytes())
    document["roles"]["guardian"] = account(0xBAD)
    file.write_text(json.dumps(document))
    ran = scene.run("reconcile")
    assert ran.code == 1
    assert ran.document["reconciled"] is False
    assert any("GUARDIAN_ROLE" in each["name"] for each in ran.document["differences"])


def test_a_keystore_opens_with_its_password_and_no_other(scene: Scene) -> None:
    with Devnet(scene.chain) as devnet:
        key = devnet.keys[PROPOSER - 1]
    file = scene.folder / "proposer.json"
    file.write_text(json.dumps(Account.encrypt(key, "wrong", iterations=2)))
    ran = scene.run("propose", "--keystore", file)
    assert (ran.code, "cannot be unlocked" in ran.document["failed"]) == (2, True)
    assert "cannot be unlocked" in ran.err
    file.write_text(json.dumps(Account.encrypt(key, "right", iterations=2)))
    assert scene.run("propose", "--keystore", file).code == 0


def test_without_a_key_or_a_deployment_it_says_which_flag_is_missing(scene: Scene) -> None:
    assert "--keystore" in scene.run("propose").err
    ran = tallystick("payout", "status", scene.payout)
    assert ran.code == 2
    assert "--deployment" in ran.err


@pytest.mark.parametrize("text", ["0x12", "a" * 42, "0x" + "g" * 40])
def test_an_address_is_0x_and_40_hex_digits(scene: Scene, text: str) -> None:
    assert scene.run("status", "--address", text).code == 2
