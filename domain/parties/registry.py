"""What the room `parties` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.parties import account, api_key, client, counterparty, member, plan, sign_up, webhook

FILES = (account, api_key, member, sign_up, client, counterparty, plan, webhook)
FACTS: dict[str, type[Any]] = {
    "account.opened.v1": account.AccountOpened,
    "account.member_added.v1": account.MemberAdded,
    "account.member_removed.v1": account.MemberRemoved,
    "account.member_role_changed.v1": account.MemberRoleChanged,
    "account.member_invited.v1": account.MemberInvited,
    "account.invitation_withdrawn.v1": account.InvitationWithdrawn,
    "account.invitation_redeemed.v1": account.InvitationRedeemed,
    "account.api_key_issued.v1": account.ApiKeyIssued,
    "account.api_key_revoked.v1": account.ApiKeyRevoked,
    "account.wallet_linked.v1": account.WalletLinked,
    "account.verified.v1": account.AccountVerified,
    "account.closed.v1": account.AccountClosed,
    "account.wallet_claimed.v1": account.WalletClaimed,
    "account.plan_set.v1": plan.AccountPlanSet,
    "account.operator_bootstrapped.v1": account.OperatorBootstrapped,
    "compute_client.registered.v1": client.ComputeClientRegistered,
    "compute_client.floor_set.v1": client.ClientFloorSet,
    "compute_client.key_added.v1": client.ClientKeyAdded,
    "compute_client.key_revoked.v1": client.ClientKeyRevoked,
    "compute_client.suspended.v1": client.ClientSuspended,
    "compute_client.resumed.v1": client.ClientResumed,
    "counterparty.allowed.v1": counterparty.CounterpartyAllowed,
    "counterparty.denied.v1": counterparty.CounterpartyDenied,
    "counterparty.removed.v1": counterparty.CounterpartyRemoved,
    "webhook.added.v1": webhook.WebhookAdded,
    "webhook.secret_rotated.v1": webhook.WebhookSecretRotated,
    "webhook.disabled.v1": webhook.WebhookDisabled,
    "webhook.enabled.v1": webhook.WebhookEnabled,
}
