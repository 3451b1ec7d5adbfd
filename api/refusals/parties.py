"""What refusals say: accounts, members, keys, wallets, clients, groups and webhooks."""

from __future__ import annotations

from api.refusals.sentence import (
    ANY,
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Sentence,
    sentence,
    when,
)
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.NOT_PERMITTED: sentence(
        FORBIDDEN,
        when(
            "An account of the kind {kind:word} cannot hold a key with the scope {scope:text}. "
            "Leave that scope out, or use an account of another kind.",
            scope=ANY,
            kind=ANY,
        ),
        when(
            "Providers cannot sign attributes of their own nodes. Ask a third party with a "
            "registered signing key to sign.",
            rule="signed_by_a_third_party",
        ),
        when(
            "You cannot bid on your own request. Wait for bids of other providers.",
            rule="not one's own request",
        ),
        when(
            "This API key already acts for the instance {instance_id:text}. Issue another key "
            "for the second instance.",
            rule="a key acts for one instance",
        ),
        when(
            "The ruling was refused, because a party of the dispute cannot rule on it. Another "
            "operator must rule.",
            rule="a party",
        ),
        when(
            "Only the account that made this proposal can revise it. Make a proposal of your "
            "own, or ask the author.",
            rule="only its author revises it",
        ),
        when(
            "Only the account that made this proposal can withdraw it. Reject it with "
            "`tallystick policy reject` instead.",
            rule="only its author withdraws it",
        ),
        when(
            "Only the operator can waive hardware rules. Admit the node without a waiver, or "
            "ask the operator.",
            rule="the operator waives rules of hardware",
        ),
        when(
            "The pool[ {pool_id:text}] takes only nodes of its own account. Ask the pool's "
            "owner to open it to other providers.",
            open_to_providers="False",
        ),
        when(
            "In the region {region_id:text} only the operator admits nodes. Ask the operator to "
            "admit this node.",
            region_id=ANY,
        ),
        when(
            "This payment was made by {method:word}, and its money comes in another way. Use "
            "the call for that payment method.",
            method=ANY,
        ),
        when(
            "The account {payer_account_id:text} cannot pay for this account. Choose another "
            "payer.",
            payer_account_id=ANY,
        ),
        when(
            "You are not the party that can do this in the dispute {dispute_id:text}. The other "
            "party must do it.",
            dispute_id=ANY,
        ),
        when(
            "The line {position:count} is not of a lease of yours. Dispute only lines on your "
            "own statement.",
            position=ANY,
        ),
        when(
            "An account of the kind {kind:word} cannot do this. Use an account of the kind that "
            "the operation needs.",
            kind=ANY,
        ),
        "Your account is not allowed to do this. Use a key of the account that the object "
        "belongs to.",
    ),
    Reason.ACCOUNT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no account[ {account_id:text}] that you may see. `tallystick account list` "
        "shows the accounts you can use.",
    ),
    Reason.ACCOUNT_EXISTS: sentence(
        CONFLICT,
        "The account[ {account_id:text}] exists already. Use it, or create another one under a "
        "new id.",
    ),
    Reason.ACCOUNT_CLOSED: sentence(
        CONFLICT,
        "The account[ {account_id:text}] is closed, so nothing new can be recorded for it. Use "
        "an open account.",
    ),
    Reason.ACCOUNT_NOT_EMPTY: sentence(
        CONFLICT,
        when(
            "The account cannot be closed: the lease {lease_id:text} is {status:word}. Close "
            "it, and wait until it is settled.",
            lease_id=ANY,
        ),
        when(
            "The account cannot be closed: the escrow {escrow_id:text} still holds credits. "
            "Wait until its leases are settled.",
            escrow_id=ANY,
        ),
        when(
            "The account cannot be closed: the node {node_id:text} is {phase:word}. Retire it "
            "with `tallystick node retire`.",
            node_id=ANY,
        ),
        when(
            "The account cannot be closed: the region {storage_node:text} has a storage node. "
            "Remove it with `tallystick storage remove`.",
            storage_node=ANY,
        ),
        when(
            "The account cannot be closed: it has {edge_devices:count} edge devices. Remove "
            "them with `tallystick device remove`; the last charge is made after midnight UTC.",
            edge_devices=ANY,
        ),
        when(
            "The account cannot be closed: the cash-out {cash_out_id:text} is {status:word}. "
            "Wait until it is paid, or cancel it.",
            cash_out_id=ANY,
        ),
        when(
            "The account cannot be closed: the book account {book:text} is not empty. Spend the "
            "credits, pay what is owed or cash out first.",
            book=ANY,
        ),
        "The account cannot be closed, because something of it is still open or has a balance. "
        "End it first.",
    ),
    Reason.MEMBER_UNKNOWN: sentence(
        NOT_FOUND,
        "The account has no member[ {member_id:text}]. Check the id, or add the member first.",
    ),
    Reason.MEMBER_EXISTS: sentence(
        CONFLICT,
        "The member[ {member_id:text}] belongs to the account already[, as {role:word}]. Remove "
        "the member first to give another role.",
    ),
    Reason.ROLE_UNKNOWN: sentence(
        INVALID,
        "[{role:text} is not a role of members. ]Choose a role that the operation's description "
        "lists.",
    ),
    Reason.LAST_OWNER: sentence(
        CONFLICT,
        "The member[ {member_id:text}] is the last owner of the account and cannot be removed. "
        "Add another owner first.",
    ),
    Reason.API_KEY_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no API key[ {key_id:text}] of this account. List the keys of the account and "
        "check the id.",
    ),
    Reason.API_KEY_REVOKED: sentence(
        CONFLICT,
        "The API key[ {key_id:text}] is revoked and cannot be used again. Issue a new key.",
    ),
    Reason.SCOPE_UNKNOWN: sentence(
        INVALID,
        "[{scope:text} is not a scope of API keys. ]Choose scopes that the operation's "
        "description lists.",
    ),
    Reason.OPERATOR_EXISTS: sentence(
        CONFLICT,
        "This installation has its operator already[: {account_id:text}]. Use the key that "
        "`tallystick admin bootstrap` printed then.",
    ),
    Reason.WALLET_UNKNOWN: sentence(
        NOT_FOUND,
        "No leaf of the payout[ of epoch {epoch:count}] belongs to the wallet[ {address:text}]. "
        "Check the address, or look in a later epoch.",
    ),
    Reason.WALLET_TAKEN: sentence(
        CONFLICT,
        "The wallet[ {address:text}] belongs to another account. Bind another wallet, or "
        "release it from the other account first.",
    ),
    Reason.BAD_ADDRESS: sentence(
        INVALID,
        "[{address:text} is not an Ethereum address. ][{controller_address:text} is not an "
        "Ethereum address. ]An address is 0x and 40 hexadecimal digits.",
    ),
    Reason.COUNTERPARTY_DENIED: sentence(
        CONFLICT,
        "The account {account_id:text} does not deal with {counterparty_id:text}, because of "
        "its counterparty list. Choose another provider, or change the list with `tallystick "
        "counterparty set`.",
        "One of the two accounts does not deal with the other, because of its counterparty "
        "list. Choose another provider, or change your own list with `tallystick counterparty "
        "set`.",
    ),
    Reason.GROUP_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "There is no group {group_id:text} in the pool {pool_id:text}. `tallystick group "
            "list` shows the groups.",
            pool_id=ANY,
        ),
        "There is no group[ {group_id:text}] that you may see. `tallystick group list` shows "
        "yours.",
    ),
    Reason.GROUP_EXISTS: sentence(
        CONFLICT,
        when(
            "{target:text} belongs to the group {group_id:text} already. Remove it there before "
            "you add it to another group.",
            target=ANY,
        ),
        "The group[ {group_id:text}] exists already. Use it, or choose another id.",
    ),
    Reason.CLIENT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no compute client[ {client_id:text}] that you may see. `tallystick client "
        "list` shows the clients.",
    ),
    Reason.CLIENT_NOT_AUTHORISED: sentence(
        FORBIDDEN,
        when(
            "The compute client {client_id:text} is not registered. Register it with "
            "`tallystick client register`.",
            rule="not registered",
        ),
        when(
            "The compute client {client_id:text} is suspended. Ask the operator to lift the "
            "suspension.",
            rule="suspended",
        ),
        when(
            "This API key of the compute client {client_id:text} is bound to no instance. Use a "
            "key that `tallystick client key` issued for an instance.",
            rule="the key is bound to no instance",
        ),
        when(
            "The compute client {client_id:text} is suspended, or every key of its instance "
            "{instance_id:text} is revoked. Issue a new key with `tallystick client key`, or "
            "ask the operator.",
            instance_id=ANY,
        ),
        "The compute client is not allowed to do this. Use a key of an instance of a registered "
        "client.",
    ),
    Reason.WEBHOOK_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no webhook[ {endpoint_id:text}] that you may see. `tallystick webhook list` "
        "shows yours.",
    ),
    Reason.WEBHOOK_URL: sentence(
        INVALID,
        "The address of a webhook was refused. It needs https, a host name, port 443 or 8443, "
        "and[ at most {at_most:characters}] visible ASCII characters.",
    ),
    Reason.SIGNING_KEY_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no signing key[ {key_id:text}] of this account. Register it with `tallystick "
        "account signing-key`.",
    ),
    Reason.SIGNING_KEY_INVALID: sentence(
        INVALID,
        when(
            "The encryption key is not a valid X25519 public key. Send 32 bytes in the form "
            "that the field asks for.",
            field="encryption_key",
        ),
        "The signing key is not a valid Ed25519 public key. Send 32 bytes in the form that the "
        "field asks for.",
    ),
    Reason.SIGNING_KEY_REVOKED: sentence(
        CONFLICT,
        "The signing key[ {key_id:text}] is revoked, so it cannot sign. Register another key "
        "with `tallystick account signing-key`.",
    ),
    Reason.IDEMPOTENCY_KEY_REUSED: sentence(
        INVALID,
        "This Idempotency-Key was used before for a different request, so nothing was done. "
        "Send the first request again unchanged, or use a new key for the new request.",
    ),
    Reason.QUOTA_EXHAUSTED: sentence(
        CONFLICT,
        when(
            "This needs {asked_ppm:gpus_of}, but the quota of {quota_id:text} is "
            "{gpu_ppm_max:gpus_of} and {used_ppm:gpus_of} are in use. Close a lease, or raise "
            "the quota with `tallystick group quota`.",
            quota_id=ANY,
        ),
        when(
            "The quota is full, and the project's overflow policy refuses leases above it. "
            "Close a lease, or change the policy with `tallystick project overflow`.",
            rule="the project's overflow policy refuses",
        ),
        when(
            "The quota is full, so this lease must be rented outside the pools with a quota. "
            "Leave out the pool and request the lease again.",
            rule="rented outside the pools with a quota",
        ),
        when(
            "The quota is full, so this lease cannot run on your own nodes. Rent from another "
            "provider, or close a lease.",
            rule="what is above the quota is rented elsewhere",
        ),
        "The quota for GPUs is full. Close a lease, or raise the quota with `tallystick group "
        "quota`.",
    ),
    Reason.BUDGET_EXHAUSTED: sentence(
        CONFLICT,
        when(
            "This needs {asked:credit}, but the budget of the {scope:word} {target:text} is "
            "{limit:amount} for {month:text}, and {used:amount} are used. Raise it with "
            "`tallystick budget set`, or wait for the next month.",
            limit=ANY,
        ),
        "The monthly budget is used up. Raise it with `tallystick budget set`, or wait for the "
        "next month.",
    ),
}
