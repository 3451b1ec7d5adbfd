"""`tallystick chain deploy | doctor` on the embedded EVM: the file, and each thing that differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from contracts import deployment as deployments
from contracts.abi import artifact
from contracts.chain import Call, Chain
from contracts.deployment import Deployment
from contracts.devnet import Devnet
from contracts.payout_tree import keccak256
from contracts.signers import LocalKeySigner, embedded_keys
from tests.scenes.shell import Ran, tallystick

NAMES = ("admin", "guardian", "emitter", "proposer", "oracle_admin", "oracle")
CAP_TOLD = "cap of epoch 1"
CONTRACTS = {"TallyToken", "RewardsDistributor", "EmissionController", "CreditBurner"}


def addresses(chain_id: int) -> dict[str, str]:
    keys = zip(NAMES, embedded_keys(), strict=False)
    return {name: LocalKeySigner(key, chain_id).address for name, key in keys}


def plan(folder: Path, roles: dict[str, str], **terms: Any) -> Path:
    told = {
        "genesis_s": 1_800_000_000,
        "epoch_length_s": 86_400,
        "timelock_s": 172_800,
        "epochs_per_period": 365,
        "period_caps": [10**14],
        "recycle_cap": 0,
        "genesis_supply": 10**14,
        "anchor_price": 2_000_000,
        **terms,
    }
    lines = ["[roles]", *(f'{name} = "{address}"' for name, address in roles.items()), "[terms]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in told.items()]
    file = folder / "plan.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """The contracts on a chain in a file, put there by the command."""
    folder = tmp_path_factory.mktemp("chain")
    with Devnet() as devnet:
        roles = addresses(devnet.chain_id)
    chain = folder / "chain.sqlite"
    ran = tallystick(
        *("chain", "deploy", plan(folder, roles), "--chain-file", chain, "--dev-key", 1, "--json"),
        DATA_DIR=folder,
    )
    assert ran.code == 0, ran
    return folder, ran


def looked(folder: Path, *flags: object) -> tuple[int, list[dict[str, str]]]:
    """What `chain doctor` finds, without a ledger."""
    ran = tallystick("chain", "doctor", "--no-ledger", "--json", *flags, DATA_DIR=folder)
    return ran.code, ran.document["problems"]


def test_the_file_holds_addresses_hashes_of_the_code_arguments_and_chain(
    deployed: tuple[Path, Ran],
) -> None:
    folder, ran = deployed
    made: Deployment = deployments.read(folder / "deployment.json")
    told = ran.document
    assert told["chain_id"] == str(made.chain_id)
    assert set(told["contracts"]) == set(made.made) == CONTRACTS
    with Devnet(folder / "chain.sqlite") as devnet:
        chain = Chain(devnet.w3)
        for name, one in told["contracts"].items():
            code = chain.code(made.address(name))
            assert one["address"] == made.address(name)
            assert one["code_keccak256"] == keccak256(code).hex()
    burner = told["contracts"]["CreditBurner"]["arguments"]
    assert burner[:2] == [made.token, made.emission]
    assert made.terms.admin_delay_s == 172_800, "not 0 where the plan says nothing"


def test_doctor_finds_nothing_and_then_each_thing_that_was_changed(
    deployed: tuple[Path, Ran], tmp_path: Path
) -> None:
    folder, _ = deployed
    assert looked(folder) == (0, [])
    made = deployments.read(folder / "deployment.json")
    document = json.loads((folder / "deployment.json").read_text())

    def changed(change: Any) -> list[str]:
        other = json.loads(json.dumps(document))
        change(other)
        file = tmp_path / "other.json"
        file.write_text(json.dumps(other))
        code, problems = looked(folder, "--deployment", file)
        assert code == 1
        return [each["what"] for each in problems]

    stranger = "0x" + "ee" * 20
    assert changed(lambda it: it["roles"].update(emitter=stranger)) == [
        "EmissionController EMITTER_ROLE",
        "balance of the emitter",
    ]
    assert changed(lambda it: it["made"]["TallyToken"].update(code_keccak256="00" * 32)) == [
        "TallyToken code"
    ]
    assert changed(lambda it: it.update(chain_id="1")) == ["chain id"]
    keystores = tmp_path / "keystores"
    keystores.mkdir()
    for role in ("emitter", "proposer"):
        told = {"address": getattr(made.roles, role)[2:].lower()}
        (keystores / f"{role}.json").write_text(json.dumps(told))
    at = {"DATA_DIR": folder, "CHAIN_KEYSTORES": keystores}
    assert tallystick("chain", "doctor", "--no-ledger", **at).code == 0
    (keystores / "emitter.json").write_text((keystores / "proposer.json").read_text())
    ran = tallystick("chain", "doctor", "--no-ledger", "--json", **at)
    assert [each["what"] for each in ran.document["problems"]] == ["keystore emitter.json"]


def test_caps_below_the_policy_are_told(
    deployed: tuple[Path, Ran], tmp_path: Path, database: str
) -> None:
    folder, _ = deployed
    at = {"DATA_DIR": tmp_path, "DATABASE_URL": database}
    assert tallystick("admin", "bootstrap", **at).code == 0
    document = json.loads((folder / "deployment.json").read_text())
    chain, file = ("--chain-file", folder / "chain.sqlite"), tmp_path / "other.json"
    for caps, told in (([str(10**14)], []), (["1"], ["EmissionController cap(1,)", CAP_TOLD])):
        document["terms"]["period_caps"] = caps
        file.write_text(json.dumps(document))
        ran = tallystick("chain", "doctor", "--json", *chain, "--deployment", file, **at)
        assert [each["what"] for each in ran.document["problems"]] == told
        assert ran.code == len(told[:1])


def test_doctor_makes_no_database_and_migrates_none(
    deployed: tuple[Path, Ran], tmp_path: Path, empty_database: str
) -> None:
    folder, _ = deployed
    flags = ("--chain-file", folder / "chain.sqlite", "--deployment", folder / "deployment.json")
    ran = tallystick("chain", "doctor", *flags, DATA_DIR=tmp_path)
    assert (ran.code, "there is no database" in ran.err) == (1, True), ran
    assert not (tmp_path / "pg").exists()
    at = {"DATA_DIR": tmp_path, "DATABASE_URL": empty_database}
    ran = tallystick("chain", "doctor", *flags, **at)
    assert (ran.code, "not of this version" in ran.err) == (1, True), ran
    with psycopg.connect(empty_database) as connection:
        found = connection.execute("SELECT to_regclass('public.migration')").fetchone()
    assert found == (None,)
    assert not list(tmp_path.glob("keys/*"))


@pytest.mark.parametrize(
    ("roles", "terms", "said"),
    [
        ({"guardian": "0x12"}, {}, "guardian is no address"),
        ({"guardian": "12" * 20}, {}, "guardian is no address"),
        ({"extra": "0x" + "00" * 20}, {}, "look at extra"),
        ({}, {"period_caps": []}, "period_caps"),
        ({}, {"timelock_s": -1}, "timelock_s"),
        ({}, {"colour": 1}, "does not know colour"),
        ({"guardian": None}, {}, "one key may not propose and veto"),
    ],
)
def test_a_wrong_plan_is_named_and_nothing_is_deployed(
    roles: dict[str, str | None], terms: dict[str, Any], said: str, tmp_path: Path
) -> None:
    chain = tmp_path / "chain.sqlite"
    with Devnet(chain) as devnet:
        known = addresses(devnet.chain_id)
    wanted = known | {name: value or known["proposer"] for name, value in roles.items()}
    file = plan(tmp_path, wanted, **terms)
    ran = tallystick(
        "chain", "deploy", file, "--chain-file", chain, "--dev-key", 1, DATA_DIR=tmp_path
    )
    assert (ran.code, said in ran.err, "Traceback" in ran.err) == (2, True, False), ran
    assert not (tmp_path / "deployment.json").exists()
    with Devnet(chain) as devnet:
        assert Chain(devnet.w3).head().number == 0


def test_a_deployment_that_is_there_is_not_replaced(deployed: tuple[Path, Ran]) -> None:
    folder, _ = deployed
    before = (folder / "deployment.json").read_bytes()
    ran = tallystick(
        *("chain", "deploy", folder / "plan.toml", "--chain-file", folder / "chain.sqlite"),
        *("--dev-key", 1),
        DATA_DIR=folder,
    )
    assert (ran.code, (folder / "deployment.json").read_bytes() == before) == (1, True)


def test_a_role_taken_away_is_found(deployed: tuple[Path, Ran]) -> None:
    """Last: it changes the chain."""
    folder, _ = deployed
    made = deployments.read(folder / "deployment.json")
    with Devnet(folder / "chain.sqlite") as devnet:
        data = artifact("CreditBurner").call_data(
            "revokeRole", deployments.role_id("GUARDIAN_ROLE"), made.roles.guardian
        )
        admin = LocalKeySigner(embedded_keys()[0], devnet.chain_id)
        Chain(devnet.w3).execute(admin, Call(made.burner, data))
    code, problems = looked(folder)
    assert (code, [each["what"] for each in problems]) == (1, ["CreditBurner GUARDIAN_ROLE"])
