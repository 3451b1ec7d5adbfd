"""What refusals say: providers, regions, nodes, devices, maintenance, licences and attributes."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.fleet.reasons import FleetReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    FleetReason.PROVIDER_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no provider[ {provider_id:text}] that you may see. `tallystick provider list` "
        "shows the providers.",
    ),
    FleetReason.PROVIDER_EXISTS: sentence(
        CONFLICT,
        "The provider[ {provider_id:text}] exists already. Use it; `tallystick provider list` "
        "shows the providers.",
    ),
    FleetReason.PROVIDER_KIND_UNKNOWN: sentence(
        INVALID,
        "[{kind:text} is not a kind of provider. ]Choose a kind that `tallystick provider kinds` "
        "lists.",
    ),
    FleetReason.PAYMENT_MODE_NEEDED: sentence(
        CONFLICT,
        when(
            "The account is paid as {mode:word}, which registering a provider does not change. "
            "Leave the payment mode out, or change it with `tallystick cash-out mode`.",
            mode=ANY,
        ),
        "A provider is registered only for an account that has a payment mode[, and "
        "{account_id:text} has none]. Give `--payment-mode credits`, or set cash and its "
        "destination with `tallystick cash-out mode`.",
    ),
    FleetReason.CLOUD_REGION: sentence(
        CONFLICT,
        when(
            "The region {region_id:text} is in the cloud region {cloud_region:text} already, and a "
            "provider uses each one once. Use that region.",
            region_id=ANY,
        ),
        when(
            "Machines of the kind {kind:text} are in no cloud region. Leave `--cloud-region` out.",
            rule="physical",
        ),
        when(
            "A region of the kind {kind:text} is one region of that cloud. Name it with "
            "`--cloud-region`, and give no site.",
            rule="named",
        ),
        when(
            "The cloud region {cloud_region:text} cannot be opened here. `tallystick cloud "
            "regions` lists those that can.",
            rule="listed",
        ),
        "The cloud region does not fit the provider. `tallystick region list` shows the regions.",
    ),
    FleetReason.REGION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no region[ {region_id:text}] of this provider. `tallystick region list` shows "
        "the regions.",
    ),
    FleetReason.PROVIDER_NOT_READY: sentence(
        CONFLICT,
        "The cloud account of the provider is not set up[: {missing:text} is missing]. `tallystick "
        "cloud checklist` shows every step; report them with `tallystick cloud report`.",
    ),
    FleetReason.REGION_NOT_SUITED: sentence(
        CONFLICT,
        when(
            "The region {region_id:text} keeps its data on each node, so it has no storage node. "
            "Open a region with the storage mode central.",
            what="storage_node",
        ),
        when(
            "The region {region_id:text} admits nodes without the whole procedure, so there is "
            "nothing to request. Get a code with `tallystick node code`.",
            what="admission",
        ),
        when(
            "Edge devices belong to a region of a physical provider with the storage mode central, "
            "and the region {region_id:text} is not one. Open such a region.",
            what="edge_device",
        ),
        when(
            "A region of a cloud provider keeps its data on a storage node. Choose the storage "
            "mode central.",
            what="cloud_region",
        ),
        "The region[ {region_id:text}] does not allow this. `tallystick region show` shows its "
        "storage mode.",
    ),
    FleetReason.REGION_EXISTS: sentence(
        CONFLICT,
        when(
            "The region {region_id:text}, or another one named {name:text}, exists already. "
            "Choose another name.",
            name=ANY,
        ),
        "The region[ {region_id:text}] exists already. Use it, or choose another name.",
    ),
    FleetReason.REGION_TERMS: sentence(
        CONFLICT,
        when(
            "The sharing terms of the region can start on {earliest_day:day} at the earliest. "
            "Choose that day or a later one.",
            rule="notice",
        ),
        when(
            "The next version of the region's sharing terms is {expected:count}, not "
            "{version:count}. Read `tallystick region terms` and use that number.",
            expected=ANY,
        ),
        "The sharing terms of the region do not follow the terms before them. Read `tallystick "
        "region terms`.",
    ),
    FleetReason.REGION_DAY: sentence(
        CONFLICT,
        when(
            "The region has no sharing terms on {day:day}. Choose a day after its first terms "
            "began.",
            rule="no terms on that day",
        ),
        when(
            "The revenue of {day:day} cannot be shared before the day is over. Try again after "
            "midnight UTC.",
            rule="the day is not over",
        ),
        when(
            "The revenue of {day:day} waits for the day before it. Share the earlier day first.",
            rule="the day before is not shared",
        ),
        "The revenue of this day cannot be shared now. Share the days in order, each after it "
        "is over.",
    ),
    FleetReason.REGION_PHASE: sentence(
        CONFLICT,
        when(
            "No node can join the region {region_id:text}: it is {phase:text}. Check in with "
            "`tallystick home check-in` for another region.",
            rule="joins",
        ),
        when(
            "The region {region_id:text} keeps no wait list: it is {phase:text}. Check in again "
            "with `tallystick home check-in`.",
            rule="waits",
        ),
        when(
            "The region {region_id:text} cannot open with {workers:count} of the "
            "{workers_min:count} workers it needs. Let more nodes join, or lower `--workers-min`.",
            rule="workers_min",
        ),
        when(
            "The region {region_id:text} cannot be closed: it still has nodes. Retire them first.",
            rule="nodes_left",
        ),
        "The region[ {region_id:text}] is in a phase[, {phase:text},] that does not allow this. "
        "`tallystick home growth` shows it.",
    ),
    FleetReason.REGION_FULL: sentence(
        CONFLICT,
        "The region[ {region_id:text}] takes no more workers[: it has {workers:count} of at most "
        "{at_most:count}]. Join another region, or raise its cap with `tallystick home grow`.",
    ),
    FleetReason.REGION_MIX: sentence(
        CONFLICT,
        when(
            "Every GPU of the region {region_id:text} is of one model, and this node has another. "
            "Join another region.",
            rule="one_model",
        ),
        when(
            "The region {region_id:text} does not mix nodes with GPUs and nodes without. Join "
            "another region.",
            rule="cpu_or_gpu",
        ),
        "The region's nodes do not go together with this one. `tallystick home growth` shows its "
        "terms.",
    ),
    FleetReason.TRANSFER_UNKNOWN: sentence(
        NOT_FOUND,
        "No part of the node[ {node_id:text}] is offered to you now. Its owner offers it with "
        "`tallystick node transfer`; the offer holds for seven days.",
    ),
    FleetReason.STORAGE_MODE_UNKNOWN: sentence(
        INVALID,
        "[{storage_mode:text} is not a storage mode of regions. ]Choose one of the modes[: "
        "{allowed:text}].",
    ),
    FleetReason.STORAGE_NODE_STATE: sentence(
        CONFLICT,
        when(
            "The storage node of the region {region_id:text} is not ready yet. Report it with "
            "`tallystick storage ready` first.",
            needs="ready",
        ),
        when(
            "The region {region_id:text} has no storage node. Create one with `tallystick "
            "storage provision` first.",
            needs="provisioned",
        ),
        when(
            "The storage node serves {nodes:count} nodes of the region {region_id:text}. Retire "
            "them first, or replace the storage node with `tallystick storage replace`.",
            nodes=ANY,
        ),
        when(
            "The region has a storage node of the class {storage_class:text} already. Replace it "
            "with `tallystick storage replace` to get another class.",
            storage_class=ANY,
        ),
        "The state of the region's storage node does not allow this. `tallystick storage show` "
        "shows it.",
    ),
    FleetReason.JOIN_CODE_UNKNOWN: sentence(
        NOT_FOUND,
        "No node can join with this code: it was never issued, or it is mistyped. Get a new one "
        "with `tallystick node code`.",
    ),
    FleetReason.JOIN_CODE_USED: sentence(
        CONFLICT,
        "This join code was used before, and each code admits one node. Get a new one with "
        "`tallystick node code`.",
    ),
    FleetReason.JOIN_CODE_EXPIRED: sentence(
        CONFLICT,
        "This join code expired[ at {expires_at_us:time}]. Get a new one with `tallystick node "
        "code`.",
    ),
    FleetReason.NODE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no node[ {node_id:text}] that you may see. `tallystick node list` shows the "
        "nodes.",
    ),
    FleetReason.NODE_EXISTS: sentence(
        CONFLICT,
        "The node[ {node_id:text}] has joined already. Start it with its existing key, or join "
        "under a new id.",
    ),
    FleetReason.NODE_STATE: sentence(
        CONFLICT,
        when(
            "The node {node_id:text} has joined, but its key is not confirmed. Confirm it with "
            "`tallystick node confirm`.",
            phase="joining",
        ),
        when(
            "The node {node_id:text} is confirmed but not admitted. Admit it with `tallystick "
            "node admit`, or ask the operator.",
            phase="confirmed",
        ),
        when(
            "The node {node_id:text} is retired and cannot be used again. Join the machine "
            "again as a new node.",
            phase="retired",
        ),
        when(
            "The node {node_id:text} is in quarantine for good. Retire it with `tallystick node "
            "retire`, and join the machine again with an empty state folder.",
            phase="quarantined",
        ),
        when(
            "The node {node_id:text} is draining and takes no new leases. Activate it with "
            "`tallystick node activate`, or use another node.",
            phase="draining",
        ),
        when(
            "The node {node_id:text} is in maintenance. Activate it with `tallystick node "
            "activate` first.",
            phase="maintenance",
        ),
        when(
            "The node {node_id:text} is being provisioned. Wait until it has told its inventory.",
            phase="provisioning",
        ),
        when(
            "The node {node_id:text} is out of order: {phase:word}. Repair it and start again with "
            "`tallystick node maintenance`.",
            phase="stopped",
        ),
        when(
            "The node {node_id:text} is out of order: {phase:word}. Repair it and start again with "
            "`tallystick node maintenance`.",
            phase="errored",
        ),
        when(
            "The node {node_id:text} is out of order: {phase:word}. Repair it and start again with "
            "`tallystick node maintenance`.",
            phase="failed",
        ),
        when(
            "The node {node_id:text} is active, which does not allow this. `tallystick node "
            "show` shows its state.",
            phase="active",
        ),
        "The state of the node[ {node_id:text}] does not allow this. `tallystick node show` "
        "shows it.",
    ),
    FleetReason.NODE_KEY_MISMATCH: sentence(
        CONFLICT,
        "The key[ {key_id:text}] is not the one that the node uses now. Read the node's key "
        "with `tallystick node show` and compare the fingerprints.",
    ),
    FleetReason.NODE_KEY_USED: sentence(
        CONFLICT,
        when(
            "The new key would start at report {from_seq:count}, but the node has reports up to "
            "{last_seq:count} already. Hand the key on from the next report.",
            from_seq=ANY,
        ),
        "The key[ {key_id:text}] was used by a node before. Create a new key on the machine.",
    ),
    FleetReason.NODE_SPECS_MISSING: sentence(
        CONFLICT,
        "The node[ {node_id:text}] has not described its hardware yet. Start `tallystick-node "
        "run` on the machine and try again.",
    ),
    FleetReason.NODE_NOT_JOINABLE: sentence(
        CONFLICT,
        when(
            "The node cannot be admitted, because these hardware rules fail: {failing:word}. "
            "Repair them on the machine, or ask the operator for a waiver.",
            failing=ANY,
        ),
        "The node cannot be admitted, because its hardware does not meet the rules of the "
        "region. `tallystick node show` lists them.",
    ),
    FleetReason.ADMISSION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no admission[ {admission_id:text}] that you may see. `tallystick admission list` "
        "shows the admissions.",
    ),
    FleetReason.ADMISSION_STATE: sentence(
        CONFLICT,
        when(
            "The region {region_id:text} admits machines by the whole procedure. Begin with "
            "`tallystick admission request`.",
            region_id=ANY,
        ),
        when(
            "The machine is not set up yet: {missing:word} are missing. Do these steps in its "
            "firmware and report each with `tallystick admission step`.",
            missing=ANY,
        ),
        when(
            "The admission {admission_id:text} is {status:word}, which does not allow this step. "
            "`tallystick admission show` shows the next one.",
            status=ANY,
        ),
        "The admission does not allow this step. `tallystick admission show` shows the next one.",
    ),
    FleetReason.WALLET_NEEDED: sentence(
        CONFLICT,
        "Idle mining needs a wallet that is paid[, and the account {account_id:text} has none]. "
        "Link one with `tallystick wallet link`, and wait until it counts.",
    ),
    FleetReason.NODE_BUSY: sentence(
        CONFLICT,
        "The GPU[ {device_id:text}] is held by leases[: {leases:text}]. Drain the node with "
        "`tallystick node drain` and wait until they end.",
    ),
    FleetReason.NODE_IN_MAINTENANCE: sentence(
        CONFLICT,
        when(
            "The node {node_id:text} is under maintenance from {from_us:time}. Choose another "
            "node, or a lease that ends before then.",
            from_us=ANY,
        ),
        "The node is under maintenance in this time. Choose another node or another time.",
    ),
    FleetReason.NODE_ROLE: sentence(
        INVALID,
        when(
            "Only a worker can be behind an ingress node, and the other node must have the role "
            "ingress. Set the roles with `tallystick node role` first.",
            rule="a_worker_behind_an_ingress",
        ),
        when(
            "The ingress node must be in the same region as the worker. Choose another ingress "
            "node.",
            rule="of_the_same_region",
        ),
        when(
            "A node is put behind an ingress once it is admitted. Admit it first, or leave the "
            "ingress out: the server chooses one.",
            rule="admitted_first",
        ),
        when(
            "Only an ingress node has an address, and it is written host:port. Correct it, or "
            "leave it out.",
            rule="an_ingress_has_an_address",
        ),
        when(
            "Only an ingress node reports the bytes that go through it. Set its role with "
            "`tallystick node role` first.",
            rule="an_ingress_tells_bytes",
        ),
        "The roles of the two nodes do not go together. Set them with `tallystick node role`.",
    ),
    FleetReason.NODE_POOLED: sentence(
        CONFLICT,
        "The node[ {node_id:text}] is in the pool[ {pool_id:text}] already. Remove it there "
        "with `tallystick pool remove` first.",
    ),
    FleetReason.MAINTENANCE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no maintenance window[ {maintenance_id:text}] of this node. `tallystick "
        "maintenance list` shows the windows.",
    ),
    FleetReason.MAINTENANCE_WINDOW: sentence(
        INVALID,
        when(
            "A maintenance window must be longer than 0 and at most {at_most_us:span}. Choose a "
            "shorter window.",
            rule="length",
        ),
        when(
            "A maintenance window cannot start before now, {at_us:time}. Choose a later start.",
            rule="not_past",
        ),
        when(
            "A maintenance window can start at most {at_most_us:span} from now. Choose an "
            "earlier start.",
            rule="ahead",
        ),
        when(
            "The maintenance window ended at {until_us:time} and cannot be cancelled. Nothing "
            "needs to be done.",
            rule="not_over",
        ),
        "The maintenance window was refused. Choose a window that starts after now and has a "
        "valid length.",
    ),
    FleetReason.LICENCE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no licence[ {licence_id:text}] that you may see. `tallystick licence list` "
        "shows the licences.",
    ),
    FleetReason.LICENCE_EXISTS: sentence(
        CONFLICT,
        "The licence[ {licence_id:text}] is recorded already. Use it, or grant another one "
        "under a new id.",
    ),
    FleetReason.ATTRIBUTE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no signed attribute[ {statement_id:text}]. `tallystick attribute list` shows "
        "the attributes.",
    ),
    FleetReason.ATTRIBUTE_REVOKED: sentence(
        CONFLICT,
        "The attribute[ {statement_id:text}] is revoked already. Sign a new one with "
        "`tallystick attribute sign`.",
    ),
    FleetReason.DEVICE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no device[ {device_id:text}] that you may see. Check the id; `tallystick node "
        "show` lists the devices of a node.",
    ),
    FleetReason.DEVICE_ELSEWHERE: sentence(
        CONFLICT,
        when(
            "The device {device_id:text} belonged to another provider before. The operator must "
            "admit the node.",
            rule=ANY,
        ),
        "The device[ {device_id:text}] is registered on another node. Retire that node first.",
    ),
    FleetReason.DEVICE_INTERVAL: sentence(
        CONFLICT,
        when(
            "The time of this device is counted up to {counted_to_us:time}; the new part must "
            "begin there[ and not end at {to_us:time}]. Count from that moment.",
            counted_to_us=ANY,
        ),
        "The time of this device[ ({device_id:text})] cannot be counted for this interval. "
        "Count each part once, in order.",
    ),
    FleetReason.LEASE_STATE: sentence(
        CONFLICT,
        when(
            "The lease {lease_id:text} is not interruptible, so it cannot be paused. Close it, "
            "or rent an interruptible one next time.",
            rule="interruptible",
        ),
        when(
            "The lease {lease_id:text} has no fixed term, so it cannot be extended. Add credits "
            "with `tallystick lease top-up` instead.",
            rule="fixed_term",
        ),
        when(
            "The lease {lease_id:text} does not hold a part of the device {device_id:text}. "
            "Check both ids.",
            rule="holds_a_part",
        ),
        when(
            "An owner of the node handed on its part of it while the lease {lease_id:text} was "
            "paused, and the lease's terms name the owner before. Close it, and open a new one.",
            rule="its node was handed on",
        ),
        when(
            "Another executor of the node runs this work already. Stop the other executor, or "
            "leave the work to it.",
            rule="another executor has the work",
        ),
        when(
            "The lease is {status:word}, and only the work of a closed lease is stopped in this "
            "way. Close the lease first.",
            rule="only closed work is stopped",
        ),
        when(
            "Another executor acknowledged the start of this work. Only that executor can "
            "report its end.",
            rule="another executor started it",
        ),
        when(
            "The job {job_id:text} has no lease that ended with the code 100, so none can be "
            "restarted. Open a new lease.",
            rule="no lease of it ended with 100",
        ),
        when(
            "The escrow {escrow:text} ended at {ended_at_us:time}. Create a new one with "
            "`tallystick job escrow`.",
            escrow=ANY,
        ),
        when(
            "The lease {lease_id:text} was restarted already, as {restarted_as:text}. Use that "
            "lease.",
            restarted_as=ANY,
        ),
        when(
            "The lease {lease_id:text} ended with the code {close_code:text}, which allows no "
            "restart. Open a new lease.",
            close_code=ANY,
        ),
        when(
            "The quote {quote_id:text} expired at {expired_us:time}. Ask for a new quote with "
            "`tallystick lease quote`.",
            quote_id=ANY,
        ),
        when(
            "The lease {lease_id:text} is not of a federated job, so there is no federated fee "
            "to top up. Top up the lease itself.",
            federated="False",
        ),
        when(
            "The credits of the lease ended at {ended_at_us:time}, and it is being closed. Open "
            "a new lease.",
            ended_at_us=ANY,
        ),
        when(
            "The node had to be ready by {ready_until_us:time}, and that time has passed. The "
            "lease is cancelled at no charge; request a new one.",
            ready_until_us=ANY,
        ),
        when(
            "The lease {lease_id:text} is {status:word}, and the close code {code:text} is not "
            "true of it. Choose a code that fits its state.",
            code=ANY,
            status=ANY,
        ),
        when(
            "The lease[ {lease_id:text}] is closing, which does not allow this. It is settled "
            "when the last reports have arrived.",
            status="closing",
        ),
        "A lease that is {status:word} does not allow this[ ({lease_id:text})]. `tallystick "
        "lease show` shows its state.",
        "The state of the lease does not allow this. `tallystick lease show` shows it.",
    ),
    FleetReason.BAD_PERIOD: sentence(
        INVALID,
        when("{period:text} is not a month. Write it like 2026-11.", period=ANY),
        when(
            "The attribute would expire at {expires_at_us:time}, which is before it begins or "
            "too late. Choose another expiry.",
            expires_at_us=ANY,
        ),
        when(
            "The attribute was signed for {stated_at_us:time}, which is not now. Sign it again "
            "with the present time.",
            stated_at_us=ANY,
        ),
        when(
            "The period from {from_us:time} to {until_us:time} is empty or too long. Choose "
            "another one.",
            from_us=ANY,
        ),
        "The period is not valid. Write a month like 2026-11, or a start before its end.",
    ),
}
