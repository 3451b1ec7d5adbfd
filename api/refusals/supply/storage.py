"""What refusals say: volumes, what is mounted where, and datasets."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason
from domain.storage.reasons import StorageReason

SENTENCES: dict[Reason, Sentence] = {
    StorageReason.VOLUME_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no volume[ {volume_id:text}] that you may see. `tallystick volume list` shows "
        "yours.",
    ),
    StorageReason.VOLUME_EXISTS: sentence(
        CONFLICT,
        "The volume[ {volume_id:text}] exists already. Use it, or send a new request without an "
        "id.",
    ),
    StorageReason.VOLUME_STATE: sentence(
        CONFLICT,
        when(
            "The volume {volume_id:text} belongs to the project {project_id:text}, so jobs of "
            "other projects cannot mount it. Submit the job in that project.",
            rule="project",
        ),
        when(
            "So many leases have the volume {volume_id:text} attached that no more can have it. "
            "Close one of them first.",
            rule="attachments",
        ),
        when(
            "The funds for the volume {volume_id:text} have ended, so nothing can attach it. Buy "
            "credits with `tallystick payment create`.",
            status="grace",
        ),
        "The volume[ {volume_id:text}] is[ {status:word}] in a state that does not allow this. "
        "`tallystick volume list` shows the state of each.",
    ),
    StorageReason.VOLUME_REGION: sentence(
        CONFLICT,
        when(
            "The volumes of the job lie in several regions ({regions:text}), and a job runs in "
            "one. Name volumes of one region.",
            rule="one_region",
        ),
        when(
            "No region that the job allows has all of its volumes and pinned datasets. Leave out "
            "the regions of the job, or name other volumes.",
            rule="no_region",
        ),
        when(
            "No machine that runs jobs has joined the region {region_id:text}, so nothing could "
            "mount a volume there. Choose another region: `tallystick region list` shows all.",
            rule="no_node",
        ),
        "The volume[ {volume_id:text}] lies in another region[: {region_id:text}]. A lease that "
        "mounts it runs there.",
    ),
    StorageReason.VOLUME_ATTACHED: sentence(
        CONFLICT,
        when(
            "{leases:count} leases have the volume attached, among them {lease_id:text}. Close "
            "them first.",
            lease_id=ANY,
        ),
        "A lease has the volume attached. Close the lease first.",
    ),
    StorageReason.MOUNT_INVALID: sentence(
        INVALID,
        "The volumes of a job cannot be mounted so[: {rule:text}]. Choose paths like /vol/data.",
    ),
    StorageReason.DATASET_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no dataset[ {name:text}] that you may see. `tallystick dataset list` shows "
        "yours.",
    ),
    StorageReason.DATASET_INVALID: sentence(
        INVALID,
        "The dataset cannot be registered so[: {field:text}: {rule:text}]. Change it and send the "
        "request again.",
    ),
}
