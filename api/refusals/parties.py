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
from domain.parties.reasons import PartiesReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    PartiesReason.NOT_PERMITTED: sentence(
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
            "This payment was made by {method:word}, and its money comes in another way. "
            "`tallystick payment show` tells the state of the payment and what it waits for.",
            method=ANY,
        ),
        when(
            "The account {payer_account_id:text} cannot pay for this account. Choose another "
            "payer.",
            payer_account_id=ANY,
        ),
        when(
            "Your account is neither the renter nor the provider of the dispute "
            "{dispute_id:text}, so it cannot act in it. Use a key of one of these two accounts.",
            dispute_id=ANY,
        ),
        when(
            "The line {position:count} is not of a lease of yours. Dispute only lines on your "
            "own statement.",
            position=ANY,
        ),
        when(
            "An operator's account is made by `tallystick admin bootstrap` alone and never "
            "closed. Choose an account of another kind.",
            kind="operator",
        ),
        when(
            "An account of the kind {kind:word} cannot do this: a provider needs an account of "
            "the kind party, and a compute client one of the kind client. Open such an account "
            "with `tallystick account create`.",
            kind=ANY,
        ),
        "Your account is not allowed to do this. Use a key of the account that the object "
        "belongs to.",
    ),
    PartiesReason.ACCOUNT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no account[ {account_id:text}] that you may see. `tallystick account list` "
        "shows the accounts you can use.",
    ),
    PartiesReason.ACCOUNT_EXISTS: sentence(
        CONFLICT,
        "The account[ {account_id:text}] exists already. Use it, or create another one under a "
        "new id.",
    ),
    PartiesReason.ACCOUNT_CLOSED: sentence(
        CONFLICT,
        "The account[ {account_id:text}] is closed, so nothing new can be recorded for it. Use "
        "an open account.",
    ),
    PartiesReason.ACCOUNT_NOT_EMPTY: sentence(
        CONFLICT,
        when(
            "The account cannot be closed: credits are held for the {meter:word} of the lease "
            "{lease_id:text}. What it did not use comes back a day after it is closed; for "
            "storage, release it first.",
            meter=ANY,
        ),
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
    PartiesReason.ACCOUNT_UNVERIFIED: sentence(
        FORBIDDEN,
        "The account[ {account_id:text}] signed itself up, and until money arrives on it, or the "
        "operator verifies it, it can only read and pay in. Pay in with `tallystick payment "
        "create`, or ask the operator for `tallystick account verify`.",
    ),
    PartiesReason.MEMBER_UNKNOWN: sentence(
        NOT_FOUND,
        "The account has no member[ {member_id:text}]. Check the id, or add the member first.",
    ),
    PartiesReason.MEMBER_EXISTS: sentence(
        CONFLICT,
        "The member[ {member_id:text}] belongs to the account already[, as {role:word}]. Change "
        "the role with `tallystick member role`, then invite again with that role.",
    ),
    PartiesReason.ROLE_UNKNOWN: sentence(
        INVALID,
        "[{role:text} is not a role of members. ]Choose one of the roles[: {allowed:text}].",
    ),
    PartiesReason.LAST_OWNER: sentence(
        CONFLICT,
        "The member[ {member_id:text}] is the last owner of the account and must stay its owner. "
        "Invite another owner first.",
    ),
    PartiesReason.OWNER_NEEDED: sentence(
        FORBIDDEN,
        "Only an owner of the account can do that to an owner, or make one[; your role is "
        "{role:word}]. Ask an owner.",
    ),
    PartiesReason.ADMINISTRATOR_NEEDED: sentence(
        FORBIDDEN,
        "Your key, or the role of its member, does not allow this[; it needs the scope "
        "{needs:text}]. Ask an administrator of the account.",
    ),
    PartiesReason.ROLE_LACKS_SCOPE: sentence(
        FORBIDDEN,
        "A member[ with the role {role:word}] cannot hold the scope[ {scope:text}]. Leave that "
        "scope out, or choose another role.",
    ),
    PartiesReason.KEY_OF_ANOTHER: sentence(
        FORBIDDEN,
        when(
            "The API key {key_id:text} belongs to another member, and only its holder can rotate "
            "it. Ask the holder, or revoke the key with `tallystick key revoke`.",
            key_id=ANY,
        ),
        "The invitation is for a present member of the account[, {member_id:text}]. Redeem it with "
        "an API key of that member.",
    ),
    PartiesReason.KEY_EXCEEDS_ISSUER: sentence(
        FORBIDDEN,
        when(
            "The member {member_id:text} has a key with the scope {scope:text}, which your key "
            "does not open. Use a key with every scope that the member's keys have.",
            member_id=ANY,
            scope=ANY,
        ),
        when(
            "A key can only give scopes that it opens itself, and yours does not open "
            "{scope:text}. Leave that scope out, or use a key that has it.",
            scope=ANY,
        ),
        "A key can only give what lasts as long as itself[, until {latest_us:time}]. Choose an "
        "earlier end, or use a key that lasts longer.",
    ),
    PartiesReason.INVITATION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no such invitation that waits[: {invitation_id:text}]. Check the code, or ask "
        "for a new invitation.",
    ),
    PartiesReason.INVITATION_ENDED: sentence(
        CONFLICT,
        "The invitation has ended, or the key that made it has. Ask an administrator of the "
        "account for a new one.",
    ),
    PartiesReason.API_KEY_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no API key[ {key_id:text}] of this account. List the keys of the account and "
        "check the id.",
    ),
    PartiesReason.API_KEY_REVOKED: sentence(
        CONFLICT,
        "The API key[ {key_id:text}] is revoked and cannot be used again. Issue a new key.",
    ),
    PartiesReason.SCOPE_UNKNOWN: sentence(
        INVALID,
        "[{scope:text} is not a scope of API keys. ]Choose among the scopes[: {allowed:text}].",
    ),
    PartiesReason.OPERATOR_EXISTS: sentence(
        CONFLICT,
        "This installation has its operator already[: {account_id:text}]. Use the key that "
        "`tallystick admin bootstrap` printed then.",
    ),
    PartiesReason.WALLET_UNKNOWN: sentence(
        NOT_FOUND,
        "No leaf of the payout[ of epoch {epoch:count}] belongs to the wallet[ {address:text}]. "
        "Check the address, or look in a later epoch.",
    ),
    PartiesReason.WALLET_TAKEN: sentence(
        CONFLICT, "The wallet[ {address:text}] belongs to another account. Link another wallet."
    ),
    PartiesReason.BAD_ADDRESS: sentence(
        INVALID,
        "[{address:text} is not an Ethereum address. ][{controller_address:text} is not an "
        "Ethereum address. ]An address is 0x and 40 hexadecimal digits.",
    ),
    PartiesReason.COUNTERPARTY_DENIED: sentence(
        CONFLICT,
        "The account {account_id:text} does not deal with {counterparty_id:text}, because of "
        "its counterparty list. Choose another provider, or change the list with `tallystick "
        "counterparty set`.",
        "One of the two accounts does not deal with the other, because of its counterparty "
        "list. Choose another provider, or change your own list with `tallystick counterparty "
        "set`.",
    ),
    PartiesReason.GROUP_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "There is no group {group_id:text} in the pool {pool_id:text}. `tallystick group "
            "list` shows the groups.",
            pool_id=ANY,
        ),
        "There is no group[ {group_id:text}] that you may see. `tallystick group list` shows "
        "yours.",
    ),
    PartiesReason.GROUP_EXISTS: sentence(
        CONFLICT,
        when(
            "{target:text} belongs to the group {group_id:text} already. Remove it there before "
            "you add it to another group.",
            target=ANY,
        ),
        "The group[ {group_id:text}] exists already. Use it, or choose another id.",
    ),
    PartiesReason.CLIENT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no compute client[ {client_id:text}] that you may see. `tallystick client "
        "list` shows the clients.",
    ),
    PartiesReason.CLIENT_NOT_AUTHORISED: sentence(
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
    PartiesReason.WEBHOOK_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no webhook[ {endpoint_id:text}] that you may see. `tallystick webhook list` "
        "shows yours.",
    ),
    PartiesReason.WEBHOOK_URL: sentence(
        INVALID,
        "The address of a webhook was refused. It needs https, a host name, port 443 or 8443, "
        "and[ at most {at_most:characters}] visible ASCII characters.",
    ),
    PartiesReason.SIGNING_KEY_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no signing key[ {key_id:text}] of this account. Register it with `tallystick "
        "account signing-key`.",
    ),
    PartiesReason.SIGNING_KEY_INVALID: sentence(
        INVALID,
        when(
            "The encryption key is not a valid X25519 public key. Send 32 bytes in the form "
            "that the field asks for.",
            field="encryption_key",
        ),
        "The signing key is not a valid Ed25519 public key. Send 32 bytes in the form that the "
        "field asks for.",
    ),
    PartiesReason.SIGNING_KEY_REVOKED: sentence(
        CONFLICT,
        "The signing key[ {key_id:text}] is revoked, so it cannot sign. Register another key "
        "with `tallystick account signing-key`.",
    ),
    PartiesReason.IDEMPOTENCY_KEY_REUSED: sentence(
        INVALID,
        "This Idempotency-Key was used before for a different request, so nothing was done. "
        "Send the first request again unchanged, or use a new key for the new request.",
    ),
    PartiesReason.QUOTA_EXHAUSTED: sentence(
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
    PartiesReason.BUDGET_EXHAUSTED: sentence(
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
    PartiesReason.UNKNOWN_MODE: sentence(
        INVALID,
        when(
            "An endpoint does inference, so its work cannot be {work:text}. Leave the field "
            "out, or send inference.",
            rule="an endpoint is inference",
        ),
        when(
            "{mode:text} is not a mode of sharing. Choose whole, mig, mps, time_slice or memory.",
            rule="sharing_mode",
        ),
        when("{kind:text} cannot be added here. Choose one of: {allowed:text}.", rule="members"),
        when(
            "The split of the tariff names a bucket that does not exist: {buckets:text}, and "
            "{residual:text} for the rest. Use these buckets: {allowed:text}.",
            buckets=ANY,
        ),
        when(
            "{capacity_asset:text} does not go with the dimensions of this kind. Seats are "
            "counted in seat time, everything else in GPU time.",
            capacity_asset=ANY,
        ),
        when(
            "The dimensions {dimensions:text} and the memory {memory:text} do not go together. "
            "Give a kind with the dimension memory the memory dedicated or unified, and any other "
            "kind the memory none.",
            dimensions=ANY,
        ),
        when(
            "These are not hardware rules that a region can waive: {rules:text}. Use some of "
            "these: {allowed:text}.",
            rules=ANY,
        ),
        when(
            "Classes of workloads are lower-case words, each refused or ranked down and not both; "
            "{workloads:text} breaks that. Write each once, such as ip_lease.",
            workloads=ANY,
        ),
        when(
            "A lease with the SLA class {sla_class:text} is not paid with burned credits. Pay it "
            "in cash, or submit the job without an SLA class.",
            sla_class=ANY,
        ),
        when("{settlement:text} is not a way to pay. Choose cash or burn.", settlement=ANY),
        when(
            "{claim_code:text} is not a reason for a dispute. Choose one that `tallystick "
            "dispute open --help` lists.",
            claim_code=ANY,
        ),
        when("{outcome:text} is not an outcome. Choose one of these: {allowed:text}.", outcome=ANY),
        when(
            "There is no breaker {breaker:text}. `tallystick breaker list` shows them.", breaker=ANY
        ),
        when(
            "{meter:text} is not a resource that is metered. Use one that `tallystick tariff "
            "list` shows.",
            meter=ANY,
        ),
        when(
            "The kind {kind:text} or the vendor {vendor:text} is not a valid name. Use "
            "lower-case letters, digits and hyphens.",
            kind=ANY,
            vendor=ANY,
        ),
        when(
            "The vendor {vendor:text} or the model {model:text} is not a kind of resource with "
            "seats. Register it with `tallystick kind register` first.",
            model=ANY,
            vendor=ANY,
        ),
        when(
            "{kind:text} is not a kind that is allowed here. Choose one of these: {allowed:text}.",
            kind=ANY,
        ),
        when(
            "{scope:text} is not a scope that is allowed here. Choose one of these: "
            "{allowed:text}.",
            scope=ANY,
        ),
        when(
            "{verdict:text} is not an entry of a counterparty list. Choose allow, deny or none.",
            verdict=ANY,
        ),
        when(
            "{model:text} is not a model of edge devices. Choose one of these: {allowed:text}.",
            model=ANY,
            allowed=ANY,
        ),
        when(
            "The name of a model has letters or digits and at most 100 characters; {model:text} "
            "has not. Write the name as the driver reports it.",
            model=ANY,
        ),
        when(
            "{name:text} and its value are not a valid attribute. Use a lower-case name with dots "
            "or hyphens, and a value of printable characters.",
            name=ANY,
        ),
        when(
            "{overflow:text} is not an overflow policy. Choose one that `tallystick project "
            "overflow --help` lists.",
            overflow=ANY,
        ),
        when(
            "{federated:text} is not a kind of federated work, or does not go with the job's "
            "work. Choose training or inference.",
            federated=ANY,
        ),
        when("{work:text} is not a kind of work. Choose training or inference.", work=ANY),
        when(
            "{reference:text} is not a kind of reference. Choose one of these: {allowed:text}.",
            reference=ANY,
        ),
        when(
            "{pause:text} is not a reason to pause a lease. Choose one of these: {allowed:text}.",
            pause=ANY,
        ),
        when(
            "The runner {runner:text} with the command {command:text} is not known. Use these "
            "commands and runners: {allowed:text}.",
            command=ANY,
            runner=ANY,
        ),
        when("{role:text} is not a role of nodes. Choose worker, ingress or control.", role=ANY),
        when(
            "{setting:text} is not a setting of regions. Choose one that `tallystick region "
            "open --help` lists.",
            setting=ANY,
        ),
        when(
            "{admission:text} is not a way to admit nodes. Choose one that `tallystick region "
            "open --help` lists.",
            admission=ANY,
        ),
        when(
            "{gpu_class:text} is not a valid name of a GPU class. Use lower-case letters, "
            "digits and hyphens.",
            gpu_class=ANY,
        ),
        when(
            "{federated_unit:text} is not a unit of the federated fee. Choose one of these: "
            "{allowed:text}.",
            federated_unit=ANY,
        ),
        "A word of the request is not one of those allowed. `--help` of the command and the "
        "API's description list them; use one of those.",
    ),
    PartiesReason.SHARE_OUT_OF_RANGE: sentence(
        INVALID,
        when(
            "This device cannot be divided, and {share_ppm:percent} was asked for. Ask for the "
            "whole device.",
            rule="whole_only",
        ),
        when(
            "The least reputation must be from 0 to 1, not {min_reputation_ppm:score}. Choose "
            "such a number.",
            min_reputation_ppm=ANY,
        ),
        when(
            "{upheld_ppm:percent} does not go with the outcome {outcome:word}. Uphold more than "
            "0 % and less than 100 % for a partial outcome only.",
            upheld_ppm=ANY,
        ),
        when(
            "The refund must be from 0 % to 100 %, not {refund_ppm:percent}. Choose a percentage "
            "in between.",
            refund_ppm=ANY,
        ),
        when(
            "The participation must be from 0 % to 100 %, not {participation_ppm:percent}. Choose "
            "a percentage in between.",
            participation_ppm=ANY,
        ),
        when(
            "The shares add up to {sum_ppm:percent}. Together they must be at most 100 %, and "
            "none below 0 %.",
            sum_ppm=ANY,
        ),
        when(
            "The plain shares contradict the split: the provider's share is "
            "{provider_share_ppm:percent} there. Send the same numbers in both.",
            provider_share_ppm=ANY,
            burn_share_ppm=ANY,
        ),
        when(
            "The provider's share must be from 0 % to 100 %, not {provider_share_ppm:percent}. "
            "Choose a percentage in between.",
            provider_share_ppm=ANY,
        ),
        when(
            "The SLA class {sla_class:text} has a tier outside of 0 % to 100 %. Give each of its "
            "tiers an availability and a credit in between.",
            sla_class=ANY,
        ),
        when(
            "{share_ppm:percent} of the compute and {mem_ppm:percent} of the memory do not go "
            "with this mode of sharing. Choose parts that the mode allows.",
            share_ppm=ANY,
            mem_ppm=ANY,
            rule=ANY,
        ),
        when(
            "The part of a GPU must be above 0 % and at most 100 %; {share_ppm:percent} of the "
            "compute and {mem_ppm:percent} of the memory were asked for. Ask for the whole GPU, "
            "or for less of it.",
            share_ppm=ANY,
            mem_ppm=ANY,
        ),
        when(
            "A share must be above 0 % and at most 100 %, not {share_ppm:percent}. Choose a "
            "percentage in between.",
            share_ppm=ANY,
        ),
        "A share is out of range. Choose one above 0 % and at most 100 %.",
    ),
    PartiesReason.COUNT_OUT_OF_RANGE: sentence(
        INVALID,
        when(
            "{invitations:count} invitations wait to be redeemed, and the most is "
            "{at_most:count}. Withdraw one first.",
            invitations=ANY,
        ),
        when(
            "An invitation must end in the future, and within {at_most:span}. Choose such a time.",
            invitation_us=ANY,
        ),
        when(
            "This account has {keys:count} keys, and the most is {at_most:count}. Revoke one "
            "first.",
            keys=ANY,
        ),
        when(
            "{webhooks:count} webhooks of this account are running, and the most is "
            "{at_most:count}. Stop one first with `tallystick webhook stop`.",
            webhooks=ANY,
        ),
        when(
            "The counterparty list has {listed:count} entries; the most is {at_most:count}. "
            "Remove one first.",
            listed=ANY,
        ),
        when("A ruling needs evidence, and none was given. Name at least one piece.", evidence="0"),
        when(
            "{evidence:count} pieces of evidence were given; the most is {most:count}. Send the "
            "{most:count} that show most.",
            evidence=ANY,
        ),
        when(
            "These lines are paid to too many accounts ({held:count}; the most is "
            "{most:count}). Dispute fewer lines at once.",
            held=ANY,
        ),
        when(
            "A dispute names 1 to {most:count} lines, each once; {lines:count} were given. Open "
            "one dispute for each group of lines.",
            lines=ANY,
        ),
        when(
            "The dispute has {answers:count} answers already, the most there can be. Wait for "
            "the ruling.",
            answers=ANY,
        ),
        when(
            "A charge needs at least 1 GPU and 1 worker; {gpus:gpus} and {workers:count} workers "
            "were given. Raise both to at least 1.",
            gpus=ANY,
            workers=ANY,
        ),
        when(
            "The account has {devices:count} edge devices, and the most is {at_most:count}. "
            "Remove one first.",
            devices=ANY,
        ),
        when(
            "This was topped up {deposits:count} times, and the most is {at_most:count}. "
            "Request a new lease with more funds.",
            deposits=ANY,
        ),
        when(
            "{leases:leases} share this escrow, and the most is {at_most:count}. Close one first.",
            leases=ANY,
        ),
        when(
            "A gang of {members:count} members, at least {min_members:count}, was refused. Ask "
            "for 1 to {at_most:count} members, and for no larger smallest number than that.",
            members=ANY,
            min_members=ANY,
        ),
        when(
            "{members:count} members with {gpus_per_member:gpus} each are too many for one "
            "gang; the most is {at_most:count} members. Ask for fewer.",
            members=ANY,
            gpus_per_member=ANY,
        ),
        when(
            "The plan of this job allows {at_least:count} to {at_most:count} members, not "
            "{members:count}. Choose a number in between.",
            members=ANY,
            at_least=ANY,
        ),
        when(
            "Groups can be nested {at_most:count} deep, and this one would be at {depth:count}. "
            "Choose a parent nearer to the top.",
            depth=ANY,
        ),
        when(
            "A lease has 1 to {gpu_count_max:gpus}, not {gpu_count:count}. Ask for fewer, or "
            "open a gang with `tallystick gang open`.",
            gpu_count=ANY,
        ),
        when(
            "A federated job names 1 to {most:count} participants, not {participants:count}. Name "
            "at least one, and leave out those above the limit.",
            participants=ANY,
        ),
        when(
            "Jobs can be nested {most:count} deep, and this one would be generation "
            "{generations:count}. Choose a parent nearer to the top.",
            generations=ANY,
        ),
        when(
            "A job has at most {most:count} references, and {references:count} were given. Leave "
            "some out.",
            references=ANY,
        ),
        when(
            "The run time must be from {at_least:span} to {at_most:span}, and {value:span} was "
            "given. Choose a value in between.",
            field="run_us",
        ),
        when(
            "The {field:field} must be from {at_least:count} to {at_most:count}, and "
            "{value:count} was given. Choose a value in between.",
            field=ANY,
            value=ANY,
        ),
        when(
            "The notice of a tariff must be at most {at_most:span}. Choose a shorter one.",
            field="notice_us",
        ),
        when(
            "The value or the number of the field {field:field} is above the most that is "
            "allowed, {at_most:count}. Choose less.",
            field=ANY,
            at_most=ANY,
        ),
        when(
            "The lease has {quotes:count} quotes, and the most is {at_most:count}. Accept one "
            "of them.",
            quotes=ANY,
        ),
        when(
            "The lease was paused {pauses:count} times, and the most is {at_most:count}. Close "
            "it instead.",
            pauses=ANY,
        ),
        when("{exit_code:count} is not an exit code. Report 0 to 255.", exit_code=ANY),
        when(
            "A licence has 1 to {at_most:count} seats, not {seats:count}. Choose a number in "
            "between.",
            seats=ANY,
        ),
        when(
            "The node has {windows:count} maintenance windows ahead, and the most is "
            "{at_most:count}. Cancel one first.",
            windows=ANY,
        ),
        when(
            "The source {source:text} has {most:count} prices that may still count, the most "
            "there can be. Send the next price later.",
            source=ANY,
        ),
        when(
            "{workloads:count} classes of workloads were given; the most is {at_most:count}. "
            "Leave some out, and choose a security tier from 0 to 9.",
            workloads=ANY,
        ),
        when(
            "There is no trust tier {availability_min_tier:count}. Choose one from 0 to 4.",
            availability_min_tier=ANY,
        ),
        when(
            "{nodes:nodes} share this revenue, and the most is {at_most:count}. Open a second "
            "region for the others.",
            nodes=ANY,
        ),
        when(
            "The tariff prices {meter:text} per {per:count} units; the most is {most:count}. "
            "Choose a smaller number of units, at least 1.",
            meter=ANY,
        ),
        when(
            "The SLA class {sla_class:text} has {tiers:count} tiers that are too many or out of "
            "order. Order them by falling availability and rising credit.",
            sla_class=ANY,
            tiers=ANY,
        ),
        when(
            "There are too many entries; the most is {at_most:count}. Remove some first, or send "
            "fewer of them.",
            rows=ANY,
        ),
        when(
            "{owners:count} owners were given; the most is {at_most:count}. Leave some out.",
            owners=ANY,
        ),
        when(
            "{tasks:count} tasks are too many; the most is {at_most:count}. Push them in "
            "smaller groups, or wait until some are done.",
            tasks=ANY,
        ),
        when(
            "{types:count} types of events were given; the most is {at_most:count}. Leave some "
            "out, or name none to get all.",
            types=ANY,
        ),
        when(
            "The number is above the most that is allowed, {at_most:count}. Choose less.",
            at_most=ANY,
        ),
        "A number is out of range. `--help` of the command and the API's description tell the "
        "range; choose a number in it.",
    ),
}
