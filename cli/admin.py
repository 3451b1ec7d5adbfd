"""`tallystick admin`: what only somebody on this machine may do."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.settings import ConfigFile, DataDir, opened
from cli.terminal import AnswerIsNo, AsJson, facts, group, note, tell
from domain.duration import SECOND_US
from domain.parties.reasons import PartiesReason

app = group(
    "admin", "First steps on a new installation, and a lost key.", "tallystick admin bootstrap"
)

OWNER = "operator"


@app.command(epilog="Example: tallystick admin bootstrap --json")
def bootstrap(
    governor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Enrol this personal key as the first governor, in the same append. Without one"
            " a thief of the operator's key can enrol first.",
        ),
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create the operator's account and API key, publish tariff and policy, open epoch 1.

    The log is founded in the environment that is set, for ever. The key is shown once and not
    stored. The command is refused when an operator exists.
    """
    from api.door import keys
    from domain.epochs.epoch import OpenEpoch
    from domain.epochs.policy import first_policy
    from domain.parties.account import BootstrapOperator
    from domain.prices.tariff import CLOUDBENDER, FREE_START, publish
    from domain.stream import derive_id

    api_key = keys.new()
    key_id = keys.key_id(api_key)
    assert key_id is not None
    account_id = derive_id("acct", "operator", secrets.token_hex(16))
    terms = replace(CLOUDBENDER, free_start=FREE_START)
    with opened(config, data_dir=data_dir) as service:
        _require_standby(service)
        now_us = service.clock.now_us()
        operator = BootstrapOperator(
            account_id=account_id,
            member_id=OWNER,
            key_id=key_id,
            key_sha256=keys.digest(api_key),
            at_us=now_us,
            environment=service.settings.environment,
        )
        founding: list[Any] = [
            operator,
            *_first_governor(governor, service.settings.log_origin, now_us),
            publish(terms, version=1, effective_from_us=now_us, by=OWNER, at_us=now_us),
            first_policy(by=OWNER, at_us=now_us),
            OpenEpoch(epoch=1, start_us=now_us // SECOND_US * SECOND_US, at_us=now_us),
        ]
        _found(service, founding, now_us)
    result = {"account_id": account_id, "member_id": OWNER, "key_id": key_id, "api_key": api_key}
    tell(result, facts(result), as_json=as_json)
    note("The key is not shown again. Use it: export TALLYSTICK_API_KEY=<api_key>")
    if governor is None:
        note("Enrol a governor before anything else: `tallystick governor enrol --key me.key`.")


def _found(service: Any, founding: list[Any], now_us: int) -> None:
    """Record what founds the log; a second operator is told of the first one."""
    from domain.refusal import Refused

    try:
        service.ledger.handle(founding, key=None, now_us=now_us)
    except Refused as refused:
        if refused.reason is not PartiesReason.OPERATOR_EXISTS:
            raise
        there = refused.facts["account_id"]
        raise AnswerIsNo(
            f"there is an operator already, {there}: use its API key",
            {"refused": refused.reason.value, "facts": {"account_id": there}},
        ) from None


def _first_governor(file: Path | None, network: str, at_us: int) -> list[Any]:
    """The enrolment of a personal key, by the word of who founds the log."""
    from cli.signing import read_key
    from domain.authority.governors import ProposeGovernorChange
    from domain.authority.register import ENROL
    from domain.authority.vote import enrolment_text

    if file is None:
        return []
    personal = read_key(file)
    return [
        ProposeGovernorChange(
            network=network,
            action=ENROL,
            governors=0,
            key=personal.public,
            signature=personal.sign(enrolment_text(network, personal.public, 0)),
            by=OWNER,
            at_us=at_us,
        )
    ]


def _require_standby(service: Any) -> None:
    """A key is shown once its record is durable: who ended that wait would never see it. Raises
    AnswerIsNo.
    """
    from ledger.log.durable import AWAY_ADVICE, AWAY_TOLD

    with service.connection() as connection:
        if service.standby.is_away(connection):
            raise AnswerIsNo(f"nothing was begun: {AWAY_TOLD}\n{AWAY_ADVICE}")


@app.command("recover-key", epilog="Example: tallystick admin recover-key --json")
def recover_key(
    member: Annotated[
        str | None,
        typer.Option(metavar="MEMBER", help="Which owner gets the key; default: the first."),
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Announce a new key for an operator whose keys are all lost. It works after 72 hours.

    Until then `tallystick key recoveries` shows it to all. A governor can cancel it; while none is
    enrolled, a key of the operator can.
    """
    from api.door import keys
    from api.door.moments import moment
    from api.refusals.words import SENTENCES
    from domain.authority.key_recovery import KEY_RECOVERIES, AnnounceKeyRecovery
    from domain.refusal import Refused

    api_key = keys.new()
    key_id = keys.key_id(api_key)
    assert key_id is not None
    with opened(config, data_dir=data_dir) as service:
        _require_standby(service)
        now_us = service.clock.now_us()
        command = AnnounceKeyRecovery(
            key_id=key_id, key_sha256=keys.digest(api_key), member_id=member, at_us=now_us
        )
        try:
            service.ledger.handle(command, key=None, now_us=now_us)
        except Refused as refused:
            said = {"refused": refused.reason.value, "facts": dict(refused.facts)}
            raise AnswerIsNo(SENTENCES[refused.reason].said(refused.facts), said) from None
        waiting = service.ledger.world().state(KEY_RECOVERIES).waiting
        assert waiting is not None
        told = waiting.announced
    result = {
        "recovery": told.number,
        "account_id": told.account_id,
        "member_id": told.member_id,
        "key_id": key_id,
        "effective_at": moment(told.effective_at_us),
        "api_key": api_key,
    }
    tell(result, facts(result), as_json=as_json)
    note("The key is not shown again. It opens nothing before `effective_at`.")
