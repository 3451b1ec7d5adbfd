"""`tallystick admin`: what only somebody on this machine may do, once."""

from __future__ import annotations

import secrets

from cli.settings import ConfigFile, DataDir, opened
from cli.terminal import AnswerIsNo, AsJson, facts, group, note, tell
from domain.duration import SECOND_US
from domain.parties.reasons import PartiesReason

app = group("admin", "First steps on a new installation.", "tallystick admin bootstrap")

OWNER = "operator"


@app.command(epilog="Example: tallystick admin bootstrap --json")
def bootstrap(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Create the operator's account and API key, publish tariff and policy, open epoch 1.

    The log is founded in the environment that is set, for ever. The key is shown once and not
    stored. The command is refused when an operator exists.
    """
    from api.door import keys
    from domain.epochs.epoch import OpenEpoch
    from domain.epochs.policy import first_policy
    from domain.parties.account import BootstrapOperator
    from domain.prices.tariff import CLOUDBENDER, publish
    from domain.refusal import Refused
    from domain.stream import derive_id

    api_key = keys.new()
    key_id = keys.key_id(api_key)
    assert key_id is not None
    account_id = derive_id("acct", "operator", secrets.token_hex(16))
    with opened(config, data_dir=data_dir) as service:
        now_us = service.clock.now_us()
        operator = BootstrapOperator(
            account_id=account_id,
            member_id=OWNER,
            key_id=key_id,
            key_sha256=keys.digest(api_key),
            at_us=now_us,
            environment=service.settings.environment,
        )
        founding = [
            operator,
            publish(CLOUDBENDER, version=1, effective_from_us=now_us, by=OWNER, at_us=now_us),
            first_policy(by=OWNER, at_us=now_us),
            OpenEpoch(epoch=1, start_us=now_us // SECOND_US * SECOND_US, at_us=now_us),
        ]
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
    result = {"account_id": account_id, "member_id": OWNER, "key_id": key_id, "api_key": api_key}
    tell(result, facts(result), as_json=as_json)
    note("The key is not shown again. Use it: export TALLYSTICK_API_KEY=<api_key>")
