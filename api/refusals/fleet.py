"""What refusals say: providers, regions, nodes, devices, maintenance, licences and attributes."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.PROVIDER_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no provider[ {provider_id:text}] that you may see. `tallystick provider list` "
        "shows the providers.",
    ),
    Reason.PROVIDER_EXISTS: sentence(
        CONFLICT,
        "The provider[ {provider_id:text}] exists already. Use it; `tallystick provider list` "
        "shows the providers.",
    ),
    Reason.PROVIDER_KIND_UNKNOWN: sentence(
        INVALID,
        "[{kind:text} is not a kind of provider. ]Choose a kind that the operation's "
        "description lists.",
    ),
    Reason.REGION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no region[ {region_id:text}] of this provider. `tallystick region list` shows "
        "the regions.",
    ),
    Reason.REGION_EXISTS: sentence(
        CONFLICT,
        when(
            "The region {region_id:text}, or another one named {name:text}, exists already. "
            "Choose another name.",
            name=ANY,
        ),
        "The region[ {region_id:text}] exists already. Use it, or choose another name.",
    ),
    Reason.REGION_TERMS: sentence(
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
    Reason.REGION_DAY: sentence(
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
    Reason.STORAGE_MODE_UNKNOWN: sentence(
        INVALID,
        "[{storage_mode:text} is not a storage mode of regions. ]Choose a mode that the "
        "operation's description lists.",
    ),
    Reason.STORAGE_NODE_STATE: sentence(
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
            "The region has a storage node of the class {storage_class:text} already. Remove it "
            "before you provision another class.",
            storage_class=ANY,
        ),
        "The state of the region's storage node does not allow this. `tallystick storage show` "
        "shows it.",
    ),
    Reason.JOIN_CODE_UNKNOWN: sentence(
        NOT_FOUND,
        "No node can join with this code: it was never issued, or it is mistyped. Get a new one "
        "with `tallystick node code`.",
    ),
    Reason.JOIN_CODE_USED: sentence(
        CONFLICT,
        "This join code was used before, and each code admits one node. Get a new one with "
        "`tallystick node code`.",
    ),
    Reason.JOIN_CODE_EXPIRED: sentence(
        CONFLICT,
        "This join code expired[ at {expires_at_us:time}]. Get a new one with `tallystick node "
        "code`.",
    ),
    Reason.NODE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no node[ {node_id:text}] that you may see. `tallystick node list` shows the "
        "nodes.",
    ),
    Reason.NODE_EXISTS: sentence(
        CONFLICT,
        "The node[ {node_id:text}] has joined already. Start it with its existing key, or join "
        "under a new id.",
    ),
    Reason.NODE_STATE: sentence(
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
            "The node {node_id:text} is in quarantine. The operator must end the quarantine first.",
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
            "The node {node_id:text} is active, which does not allow this. `tallystick node "
            "show` shows its state.",
            phase="active",
        ),
        "The state of the node[ {node_id:text}] does not allow this. `tallystick node show` "
        "shows it.",
    ),
    Reason.NODE_KEY_MISMATCH: sentence(
        CONFLICT,
        "The key[ {key_id:text}] is not the one that the node uses now. Read the node's key "
        "with `tallystick node show` and compare the fingerprints.",
    ),
    Reason.NODE_KEY_USED: sentence(
        CONFLICT,
        when(
            "The new key would start at report {from_seq:count}, but the node has reports up to "
            "{last_seq:count} already. Hand the key on from the next report.",
            from_seq=ANY,
        ),
        "The key[ {key_id:text}] was used by a node before. Create a new key on the machine.",
    ),
    Reason.NODE_SPECS_MISSING: sentence(
        CONFLICT,
        "The node[ {node_id:text}] has not described its hardware yet. Start `tallystick-node "
        "run` on the machine and try again.",
    ),
    Reason.NODE_NOT_JOINABLE: sentence(
        CONFLICT,
        when(
            "The node cannot be admitted, because these hardware rules fail: {failing:word}. "
            "Repair them on the machine, or ask the operator for a waiver.",
            failing=ANY,
        ),
        "The node cannot be admitted, because its hardware does not meet the rules of the "
        "region. `tallystick node show` lists them.",
    ),
    Reason.NODE_BUSY: sentence(
        CONFLICT,
        "The GPU[ {device_id:text}] is held by leases[: {leases:text}]. Drain the node with "
        "`tallystick node drain` and wait until they end.",
    ),
    Reason.NODE_IN_MAINTENANCE: sentence(
        CONFLICT,
        when(
            "The node {node_id:text} is under maintenance from {from_us:time}. Choose another "
            "node, or a lease that ends before then.",
            from_us=ANY,
        ),
        "The node is under maintenance in this time. Choose another node or another time.",
    ),
    Reason.NODE_ROLE: sentence(
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
        "The roles of the two nodes do not go together. Set them with `tallystick node role`.",
    ),
    Reason.NODE_POOLED: sentence(
        CONFLICT,
        "The node[ {node_id:text}] is in the pool[ {pool_id:text}] already. Remove it there "
        "with `tallystick pool remove` first.",
    ),
    Reason.MAINTENANCE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no maintenance window[ {maintenance_id:text}] of this node. `tallystick "
        "maintenance list` shows the windows.",
    ),
    Reason.MAINTENANCE_WINDOW: sentence(
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
    Reason.LICENCE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no licence[ {licence_id:text}] that you may see. `tallystick licence list` "
        "shows the licences.",
    ),
    Reason.LICENCE_EXISTS: sentence(
        CONFLICT,
        "The licence[ {licence_id:text}] is recorded already. Use it, or grant another one "
        "under a new id.",
    ),
    Reason.ATTRIBUTE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no signed attribute[ {statement_id:text}]. `tallystick attribute list` shows "
        "the attributes.",
    ),
    Reason.ATTRIBUTE_REVOKED: sentence(
        CONFLICT,
        "The attribute[ {statement_id:text}] is revoked already. Sign a new one with "
        "`tallystick attribute sign`.",
    ),
    Reason.DEVICE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no device[ {device_id:text}] that you may see. Check the id; `tallystick node "
        "show` lists the devices of a node.",
    ),
    Reason.DEVICE_ELSEWHERE: sentence(
        CONFLICT,
        when(
            "The device {device_id:text} belonged to another provider before. The operator must "
            "admit the node.",
            rule=ANY,
        ),
        "The device[ {device_id:text}] is registered on another node. Retire that node first.",
    ),
    Reason.DEVICE_TAKEN: sentence(
        CONFLICT,
        when(
            "The device {device_id:text} is held by the lease {lease_id:text}. Choose another "
            "device, or wait until the lease ends.",
            lease_id=ANY,
        ),
        when(
            "The GPU is shared in the mode {mode:word} now, and one GPU has one mode at a time. "
            "Ask for that mode, or choose another GPU.",
            rule="one_mode_at_a_time",
        ),
        when(
            "The GPU is divided into time slices of another size now. Ask for a slice of that "
            "size, or choose another GPU.",
            rule="time_slices_of_one_n",
        ),
        when(
            "The GPU has {free_share_ppm:percent} of its compute and {free_mem_ppm:percent} of "
            "its memory free. Ask for a smaller share, or choose another GPU.",
            free_share_ppm=ANY,
        ),
        when(
            "The GPU has no room for a MIG instance {mig_profile:text} now. Ask for a smaller "
            "profile, or choose another GPU.",
            mig_profile=ANY,
        ),
        "The device[ {device_id:text}] is held by another lease now. Choose another device, or "
        "wait until that lease ends.",
    ),
    Reason.DEVICE_INTERVAL: sentence(
        CONFLICT,
        when(
            "The time of this device is counted up to {counted_to_us:time}; the new part must "
            "begin there[ and not end at {to_us:time}]. Count from that moment.",
            counted_to_us=ANY,
        ),
        "The time of this device[ ({device_id:text})] cannot be counted for this interval. "
        "Count each part once, in order.",
    ),
}
