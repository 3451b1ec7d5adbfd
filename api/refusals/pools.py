"""What refusals say: pools of nodes, their queues, and fair shares."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.pools.reasons import PoolsReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    PoolsReason.POOL_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no pool[ {pool_id:text}] that you may see. `tallystick pool list` shows the "
        "pools.",
    ),
    PoolsReason.POOL_EXISTS: sentence(
        CONFLICT,
        "The pool[ {pool_id:text}] exists already. Use it, or create another one under a new id.",
    ),
    PoolsReason.POOL_POLICY_INVALID: sentence(
        INVALID,
        when(
            "The weight of history in the pool's policy must be from {least:percent} to "
            "{most:percent}. Choose a value in between.",
            field="history_ppm",
            least=ANY,
        ),
        when(
            "The {field:field} of the pool's policy must be from {least:span} to {most:span}. "
            "Choose a value in between.",
            least=ANY,
        ),
        "The {field:field} of the pool's policy breaks its rule: {rule:rule}. Correct it and "
        "send the policy again.",
        "The policy of the pool breaks a rule. Correct it and send it again.",
    ),
    PoolsReason.CONTROLLER_TAKEN: sentence(
        CONFLICT,
        "The contract[ {controller_address:text}] is already the controller of a pool. Deploy one "
        "for this pool with `tallystick pool deploy-controller`.",
    ),
    PoolsReason.COMPONENT_UNKNOWN: sentence(
        NOT_FOUND,
        "The pool has no component[ {component_id:text}]. `tallystick pool components` lists the "
        "pool's components.",
    ),
    PoolsReason.COMPONENT_REMOVED: sentence(
        CONFLICT,
        "The component[ {component_id:text}] has left the pool for good. Register it again, under "
        "a new id, with `tallystick pool add-component`.",
    ),
    PoolsReason.COMPONENT_INVALID: sentence(
        INVALID,
        "The {field:field} of the component breaks its rule: {rule:rule}. Correct it and send the "
        "component again.",
        "The component breaks a rule. Correct it and send it again.",
    ),
    PoolsReason.COMPONENT_TAKEN: sentence(
        CONFLICT,
        "The pool has a component of this name or with this licence already[: "
        "{component_id:text}]. Use another name, or remove that component first.",
    ),
    PoolsReason.COMPONENTS_FULL: sentence(
        CONFLICT,
        "The pool has had[ {most:count}] components, the most there can be. Create another pool "
        "for the new ones.",
    ),
    PoolsReason.METADATA_INVALID: sentence(
        INVALID,
        when(
            "The entry {name:text} of the metadata is too long: a name has 1 to 64 characters, a "
            "value at most 500. Shorten it.",
            name=ANY,
        ),
        "The metadata of a pool has at most[ {most:count}] entries, each name once. Remove some.",
    ),
    PoolsReason.CUT_MOVED: sentence(
        CONFLICT,
        "The heads of the pool[ {pool_id:text}] were cut by another request at the same time. "
        "Send the request again.",
    ),
    PoolsReason.BASE_FULL: sentence(
        CONFLICT,
        "Your own nodes have no room for this, and the project[ {project_id:text}] refuses to "
        "rent from others. Close a lease, or let the project rent with `tallystick project "
        "overflow`.",
    ),
    PoolsReason.QUEUE_FULL: sentence(
        CONFLICT,
        when(
            "You have {waiting:count} requests waiting in the pool {pool_id:text}, the most "
            "there can be. Cancel one, or wait until one is served.",
            account_id=ANY,
        ),
        "The queue of the pool[ {pool_id:text}] is full[, with {waiting:count} requests]. Try "
        "again later, or use another pool.",
    ),
    PoolsReason.QUEUE_MOVED: sentence(
        CONFLICT,
        when(
            "It is not your turn in the pool {pool_id:text}: {waiting:count} requests are "
            "waiting. Let the request wait in the queue.",
            waiting=ANY,
        ),
        "The queue of the pool[ {pool_id:text}] has changed in the meantime. Send the request "
        "again.",
    ),
    PoolsReason.DUPLICATE_USER: sentence(INVALID, "A user is named twice. Name each user once."),
    PoolsReason.EMPTY_DEMAND: sentence(
        INVALID, "The user[ {user:text}] asks for nothing. Name at least one resource."
    ),
    PoolsReason.BAD_WEIGHT: sentence(
        INVALID, "The weight[ of the user {user:text}] must be more than 0. Give such a weight."
    ),
    PoolsReason.BAD_TIE_ORDER: sentence(
        INVALID,
        "The order for ties must name each user once. Add those that are missing, and remove "
        "the second mention.",
    ),
}
