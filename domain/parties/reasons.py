"""What this room refuses: who acts, with which key, and with whom.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class PartiesReason(Reason):
    """Why a command of this room was refused."""

    NOT_PERMITTED = "not_permitted"
    ACCOUNT_UNKNOWN = "account_unknown"
    ACCOUNT_EXISTS = "account_exists"
    ACCOUNT_CLOSED = "account_closed"
    ACCOUNT_NOT_EMPTY = "account_not_empty"
    ACCOUNT_UNVERIFIED = "account_unverified"
    MEMBER_UNKNOWN = "member_unknown"
    MEMBER_EXISTS = "member_exists"
    ROLE_UNKNOWN = "role_unknown"
    LAST_OWNER = "last_owner"
    API_KEY_UNKNOWN = "api_key_unknown"
    API_KEY_REVOKED = "api_key_revoked"
    SCOPE_UNKNOWN = "scope_unknown"
    ROLE_LACKS_SCOPE = "role_lacks_scope"
    ADMINISTRATOR_NEEDED = "administrator_needed"
    OWNER_NEEDED = "owner_needed"
    KEY_OF_ANOTHER = "key_of_another"
    KEY_EXCEEDS_ISSUER = "key_exceeds_issuer"
    INVITATION_UNKNOWN = "invitation_unknown"
    INVITATION_ENDED = "invitation_ended"
    OPERATOR_EXISTS = "operator_exists"
    WALLET_UNKNOWN = "wallet_unknown"
    WALLET_TAKEN = "wallet_taken"
    BUDGET_EXHAUSTED = "budget_exhausted"
    QUOTA_EXHAUSTED = "quota_exhausted"
    COUNTERPARTY_DENIED = "counterparty_denied"
    GROUP_UNKNOWN = "group_unknown"
    GROUP_EXISTS = "group_exists"
    CLIENT_UNKNOWN = "client_unknown"
    CLIENT_NOT_AUTHORISED = "client_not_authorised"
    SIGNING_KEY_UNKNOWN = "signing_key_unknown"
    SIGNING_KEY_INVALID = "signing_key_invalid"
    SIGNING_KEY_REVOKED = "signing_key_revoked"
    WEBHOOK_UNKNOWN = "webhook_unknown"
    WEBHOOK_URL = "webhook_url"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    COUNT_OUT_OF_RANGE = "count_out_of_range"
    SHARE_OUT_OF_RANGE = "share_out_of_range"
    UNKNOWN_MODE = "unknown_mode"
    BAD_ADDRESS = "bad_address"


REASONS = tuple(PartiesReason)
STORED: frozenset[Reason] = frozenset(
    {
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_EXISTS,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.ACCOUNT_NOT_EMPTY,
        PartiesReason.MEMBER_UNKNOWN,
        PartiesReason.MEMBER_EXISTS,
        PartiesReason.LAST_OWNER,
        PartiesReason.API_KEY_UNKNOWN,
        PartiesReason.API_KEY_REVOKED,
        PartiesReason.WALLET_TAKEN,
        PartiesReason.BUDGET_EXHAUSTED,
        PartiesReason.QUOTA_EXHAUSTED,
        PartiesReason.COUNTERPARTY_DENIED,
        PartiesReason.GROUP_UNKNOWN,
        PartiesReason.GROUP_EXISTS,
        PartiesReason.CLIENT_UNKNOWN,
        PartiesReason.SIGNING_KEY_UNKNOWN,
        PartiesReason.SIGNING_KEY_REVOKED,
        PartiesReason.WEBHOOK_UNKNOWN,
    }
)
