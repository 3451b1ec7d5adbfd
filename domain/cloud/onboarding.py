"""The checklist of a cloud provider: what its cloud account must have before a region opens.

    ready  <=>  every required step is done
    token_creator is required  <=>  the project was made before 2021-04-08

The provider reports the whole list at once, and the last report counts. The log holds the project's
id and the steps. The e-mail address of the service account stands beside the log, where it can be
erased (`ledger/beside/service_accounts.py`), and its key file is nowhere: a request that holds one
is refused. Row C-27.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from domain.calendar import day_named, day_of
from domain.cloud.reasons import CloudReason
from domain.fleet.provider import CloudAccountChecked, existing_provider, provider_stream
from domain.frozen import replace
from domain.prices.provider_kinds import is_cloud
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the cloud account must have, or may have."""

    name: str
    what: str
    is_required: bool = True


OF_OLD_PROJECTS = "token_creator"
OLD_BEFORE = "2021-04-08"
"""Projects made on this day or later have the role by themselves."""
STEPS = (
    Step("paid_billing", "A paid Cloud Billing account: a free one may attach no GPU"),
    Step("project", "A project"),
    Step("api_compute", "The API Compute Engine is enabled"),
    Step("api_pubsub", "The API Cloud Pub/Sub is enabled"),
    Step("api_logging", "The API Cloud Logging is enabled"),
    Step("api_billing", "The API Cloud Billing is enabled", is_required=False),
    Step("service_account", "A service account"),
    Step("role_compute_admin", "Its role Compute Admin"),
    Step("role_pubsub_admin", "Its role Pub/Sub Admin"),
    Step("role_logs_writer", "Its role Logs Configuration Writer"),
    Step("role_service_account_user", "Its role Service Account User"),
    Step("role_billing_viewer", "Its role Billing Account Viewer", is_required=False),
    Step(
        OF_OLD_PROJECTS,
        "Service Account Token Creator for the Pub/Sub service agent, in a project made before "
        "8 April 2021",
    ),
)
STEP_NAMES = tuple(step.name for step in STEPS)
PROJECT_ID = r"[a-z][a-z0-9-]{4,28}[a-z0-9]"
"""Google Cloud's form of a project's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCloudAccount:
    provider_id: str
    project_id: str
    project_made_on: str  # YYYY-MM-DD
    done: tuple[str, ...]
    by: str
    at_us: int


def required_of(project_made_on: str) -> tuple[str, ...]:
    """The steps that a project made on this UTC day must have, in the order of the list."""
    return tuple(
        step.name
        for step in STEPS
        if step.is_required and (step.name != OF_OLD_PROJECTS or project_made_on < OLD_BEFORE)
    )


def decide_check(command: CheckCloudAccount, world: World) -> list[Change]:
    """The same list again changes nothing. Whether it is the provider's own is asked before.

    Raises Refused: PROVIDER_UNKNOWN, NOT_A_CLOUD_PROVIDER, CHECKLIST_INVALID.
    """
    provider = existing_provider(world, command.provider_id)
    if not is_cloud(world, provider.kind, command.at_us):
        raise Refused(CloudReason.NOT_A_CLOUD_PROVIDER, provider_id=command.provider_id)
    _require_told(command)
    done = tuple(name for name in STEP_NAMES if name in command.done)
    required = required_of(command.project_made_on)
    told = CloudAccountChecked(
        provider_id=command.provider_id,
        project_id=command.project_id,
        project_made_on=command.project_made_on,
        done=done,
        missing=tuple(name for name in required if name not in done),
        by=command.by,
        at_us=command.at_us,
    )
    present = provider.cloud_account
    if present is not None and replace(told, at_us=present.at_us, by=present.by) == present:
        return []
    return [Change(provider_stream(command.provider_id), told)]


def _require_told(command: CheckCloudAccount) -> None:
    """Raises Refused: CHECKLIST_INVALID with the field and the rule that it breaks."""
    if re.fullmatch(PROJECT_ID, command.project_id) is None:
        raise _invalid("project_id", "6 to 30 small letters, digits and hyphens")
    try:
        made_on = day_named(command.project_made_on)
    except ValueError:
        raise _invalid("project_made_on", "a day like 2022-03-01") from None
    if made_on > day_of(command.at_us):
        raise _invalid("project_made_on", "no day that is still to come")
    unknown = [name for name in command.done if name not in STEP_NAMES]
    if unknown or len(set(command.done)) != len(command.done):
        raise _invalid("done", f"each of these at most once: {', '.join(STEP_NAMES)}")


def _invalid(field: str, rule: str) -> Refused:
    return Refused(CloudReason.CHECKLIST_INVALID, field=field, rule=rule)


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {CheckCloudAccount: decide_check}
