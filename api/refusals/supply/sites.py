"""What refusals say: datastores, reserved ports and edge devices."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason
from domain.sites.reasons import SitesReason

SENTENCES: dict[Reason, Sentence] = {
    SitesReason.PLAN_NEEDED: sentence(
        CONFLICT,
        "Datastores and reservations need the plan team or a higher one[; your account has "
        "{plan:text}]. Ask the operator for it.",
    ),
    SitesReason.REGION_EMPTY: sentence(
        CONFLICT,
        "The region[ {region_id:text}] has no compute node and no edge device that could use this. "
        "Let a node join with `tallystick node code` first.",
    ),
    SitesReason.SITE_NAME_TAKEN: sentence(
        CONFLICT,
        when(
            "The host name and port {name:text} are reserved in this region already. Choose "
            "another port.",
            sort="endpoint",
        ),
        when(
            "The machine {name:text} is an edge device of this region already. Remove that device "
            "first, or check the minion id.",
            sort="minion",
        ),
        when(
            "The configuration {name:text} exists in this region already. Choose another name, or "
            "send the revision that follows its last one.",
            sort="device_config",
        ),
        "The name[ {name:text}] is taken in this region. Choose another name.",
    ),
    SitesReason.DATASTORE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no datastore[ {datastore_id:text}] of yours. `tallystick datastore list` shows "
        "your datastores.",
    ),
    SitesReason.DATASTORE_INVALID: sentence(
        INVALID, "A field of the datastore is wrong[: {field:text} takes {rule:text}]. Change it."
    ),
    SitesReason.PATH_REFUSED: sentence(
        INVALID,
        "The path[ in {field:text}] is refused[: {rule:text}]. Write it like /subdir2, below the "
        "root of the datastore.",
    ),
    SitesReason.RESERVATION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no reservation[ {reservation_id:text}] of yours. `tallystick reservation list` "
        "shows your reservations.",
    ),
    SitesReason.RESERVATION_INVALID: sentence(
        INVALID, "A field of the reservation is wrong[: {field:text} takes {rule:text}]. Change it."
    ),
    SitesReason.RESERVATION_HELD: sentence(
        CONFLICT,
        "The reservation is held by the lease[ {lease_id:text}]. Close that lease first, or wait "
        "for its end.",
    ),
    SitesReason.ATTACHED_ELSEWHERE: sentence(
        INVALID,
        when(
            "The datastores and the reservation of the job are in {regions:text}, and it may run "
            "in {allowed:text} only. Name resources of one region, and allow that region.",
            allowed=ANY,
        ),
        "The datastores and the reservation of a job are all in one region[, not in "
        "{regions:text}]. Name resources of one region.",
    ),
    SitesReason.DEVICE_INVALID: sentence(
        INVALID,
        "A field of the edge device or of what it runs is wrong[: {field:text} takes {rule:text}]. "
        "Change it.",
    ),
    SitesReason.DEVICE_STATE: sentence(
        CONFLICT,
        when(
            "The edge device[ {device_id:text}] has not told yet that it runs, and only an active "
            "device gets a configuration. Start it, and let it send `tallystick device report`.",
            rule="active",
        ),
        when(
            "The edge device[ {device_id:text}] has no such deployment. Read with `tallystick "
            "device work` what it is to run.",
            rule="deployment",
        ),
        when(
            "The command of the edge device[ {device_id:text}] exited in this boot, and does not "
            "begin again by itself. Reboot the device, or deploy with `tallystick device deploy`.",
            rule="exited",
        ),
        when(
            "The values of the environment of the edge device[ {device_id:text}] were sealed by "
            "another server. Send them with the next revision of its configuration, and deploy it.",
            rule="environment",
        ),
        "The state of the edge device[ {device_id:text}] does not allow this. `tallystick device "
        "list` shows it.",
    ),
    SitesReason.DEVICE_CONFIG_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no device configuration[ {name:text}] in this region of yours. `tallystick "
        "device configs` shows them.",
    ),
    SitesReason.DEVICE_CONFIG_REVISION: sentence(
        CONFLICT,
        "The next revision of the device configuration[ {name:text} is {expected:count}, not "
        "{revision:count}]. Read it with `tallystick device revisions`, and send the next one.",
    ),
}
