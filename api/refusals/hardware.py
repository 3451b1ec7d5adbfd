"""What refusals say: modes of sharing, MIG profiles, and counts and shares of GPUs."""

from __future__ import annotations

from api.refusals.sentence import ANY, INVALID, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.MODE_NOT_SUPPORTED: sentence(
        INVALID,
        when(
            "None of the allowed models ({models:text}) has the MIG profile {mig_profile:text}. "
            "Choose another profile or another model.",
            models=ANY,
        ),
        when(
            "The {model:text} has no MIG profile {mig_profile:text}. Choose a profile of that "
            "model.",
            rule="mig_profile_not_on_this_model",
        ),
        when(
            "The {model:text} with {memory_mib:gib} cannot be shared in the mode {mode:word}. "
            "Choose another mode, or another model.",
            model=ANY,
        ),
        "The GPU cannot be shared in this mode. Choose another mode, or another model.",
    ),
    Reason.UNKNOWN_MODE: sentence(
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
        when("{kind:text} cannot be added here. Choose one of: {allowed:text}.", allowed=ANY),
        when(
            "The split of the tariff names a bucket that does not exist: {buckets:text}. Use "
            "the buckets of the field's description.",
            buckets=ANY,
        ),
        when(
            "{capacity_asset:text} does not go with the dimensions of this kind. Seats are "
            "counted in seat time, everything else in GPU time.",
            capacity_asset=ANY,
        ),
        when(
            "The dimensions {dimensions:text} and the memory {memory:text} do not go together. "
            "Correct the description of the kind.",
            dimensions=ANY,
        ),
        when(
            "These are not hardware rules: {rules:text}. Use the rules that the field's "
            "description lists.",
            rules=ANY,
        ),
        when(
            "These are not classes of workloads: {workloads:text}. Use lower-case names as the "
            "field's description says.",
            workloads=ANY,
        ),
        when("{settlement:text} is not a way to pay. Choose cash or burn.", settlement=ANY),
        when(
            "{claim_code:text} is not a reason for a dispute. Choose one that `tallystick "
            "dispute open --help` lists.",
            claim_code=ANY,
        ),
        when(
            "{outcome:text} is not an outcome. Choose one that the field's description lists.",
            outcome=ANY,
        ),
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
            "{kind:text} is not a kind that is allowed here. Choose one that the field's "
            "description lists.",
            kind=ANY,
        ),
        when(
            "{scope:text} is not a scope that is allowed here. Choose one that the field's "
            "description lists.",
            scope=ANY,
        ),
        when(
            "{verdict:text} is not an entry of a counterparty list. Choose allow, deny or none.",
            verdict=ANY,
        ),
        when(
            "{model:text} is not a valid name of a model here. Choose one that the field's "
            "description allows.",
            model=ANY,
        ),
        when(
            "{name:text} is not a valid name of an attribute. Use a name as the field's "
            "description says.",
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
            "{reference:text} is not a kind of reference. Choose one that the field's "
            "description lists.",
            reference=ANY,
        ),
        when(
            "{pause:text} is not a reason to pause a lease. Choose one that the field's "
            "description lists.",
            pause=ANY,
        ),
        when(
            "The runner {runner:text} cannot take this command. Use the commands that the "
            "executor's description lists.",
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
            "{federated_unit:text} is not a unit of the federated fee. Choose one that the "
            "field's description lists.",
            federated_unit=ANY,
        ),
        when(
            "{mode:text} is not a mode that is allowed here. Choose one that the field's "
            "description lists.",
            mode=ANY,
        ),
        "A word of the request is not one of those allowed. The field's description lists them.",
    ),
    Reason.UNKNOWN_PROFILE: sentence(
        INVALID,
        when(
            "The {model:text} has no MIG profile {mig_profile:text}. Choose a profile of that "
            "model.",
            model=ANY,
        ),
        when(
            "The mode {mode:word} does not go with the MIG profile[ {mig_profile:text}]. Name a "
            "profile with the mode mig only.",
            mode=ANY,
        ),
        "There is no MIG profile[ {mig_profile:text}]. Choose a profile of the model.",
    ),
    Reason.UNKNOWN_MODEL: sentence(
        INVALID,
        "[{model:text} is not a model that can be divided into MIG instances. ]Choose another "
        "model.",
    ),
    Reason.UNKNOWN_ID: sentence(
        INVALID, "There is no MIG instance of this id. Check the ids of the case."
    ),
    Reason.UNKNOWN_RESOURCE: sentence(
        INVALID,
        "The user {user:text} asks for a resource that does not exist: {resource:text}. Name "
        "resources of the pool only.",
        "A user asks for a resource that does not exist. Name resources of the pool only.",
    ),
    Reason.BAD_INITIAL_STATE: sentence(
        INVALID,
        "The given MIG instances cannot stand beside each other[, first {id:text}]. Correct the "
        "state at the start.",
    ),
    Reason.ID_IN_USE: sentence(
        INVALID, "A MIG instance of this id exists already. Choose another id."
    ),
    Reason.PROFILE_LIMIT: sentence(
        INVALID,
        "The GPU takes at most {at_most:count} MIG instances of {mig_profile:text}. Choose "
        "another profile or another GPU.",
        "The GPU takes no more MIG instances of this profile. Choose another profile or another "
        "GPU.",
    ),
    Reason.COMPUTE_FULL: sentence(
        INVALID,
        "The GPU has too little free compute for a MIG instance[ {mig_profile:text}]. Choose a "
        "smaller profile or another GPU.",
    ),
    Reason.NO_PLACEMENT: sentence(
        INVALID,
        "The GPU has no free place for a MIG instance[ {mig_profile:text}] beside the others. "
        "Choose a smaller profile or another GPU.",
    ),
    Reason.SHARE_OUT_OF_RANGE: sentence(
        INVALID,
        when(
            "This device cannot be divided, and {share_ppm:percent} was asked for. Ask for the "
            "whole device.",
            rule="whole_only",
        ),
        when(
            "The least reputation must be from 0 to 1, not {min_reputation_ppm:score}. Correct it.",
            min_reputation_ppm=ANY,
        ),
        when(
            "{upheld_ppm:percent} does not go with the outcome {outcome:word}. Uphold more than "
            "0 % and less than 100 % for a partial outcome only.",
            upheld_ppm=ANY,
        ),
        when(
            "The refund must be from 0 % to 100 %, not {refund_ppm:percent}. Correct it.",
            refund_ppm=ANY,
        ),
        when(
            "The participation must be from 0 % to 100 %, not {participation_ppm:percent}. "
            "Correct it.",
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
            "Correct it.",
            provider_share_ppm=ANY,
        ),
        when(
            "The SLA class {sla_class:text} has a tier outside of 0 % to 100 %. Correct its tiers.",
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
            "compute and {mem_ppm:percent} of the memory were asked for. Correct it.",
            share_ppm=ANY,
            mem_ppm=ANY,
        ),
        when(
            "A share must be above 0 % and at most 100 %, not {share_ppm:percent}. Correct it.",
            share_ppm=ANY,
        ),
        "A share is out of range. Choose a share that the field's description allows.",
    ),
    Reason.COUNT_OUT_OF_RANGE: sentence(
        INVALID,
        when(
            "This account has {keys:count} keys, and the most is {at_most:count}. Revoke one "
            "first.",
            keys=ANY,
        ),
        when(
            "The counterparty list has {listed:count} entries; the most is {at_most:count}. "
            "Remove one first.",
            listed=ANY,
        ),
        when("A ruling needs evidence, and none was given. Name at least one piece.", evidence="0"),
        when(
            "{evidence:count} pieces of evidence were given; the most is {most:count}. Send fewer.",
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
            "{gpus:gpus} for {workers:count} workers is out of range. Correct the numbers.",
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
            "A gang has 1 to {at_most:count} members, and the smallest number cannot be larger "
            "({members:count} asked for, at least {min_members:count}). Correct the numbers.",
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
            "Choose another parent.",
            depth=ANY,
        ),
        when(
            "A lease has 1 to {gpu_count_max:gpus}, not {gpu_count:count}. Ask for fewer, or "
            "open a gang with `tallystick gang open`.",
            gpu_count=ANY,
        ),
        when(
            "{participants:count} participants of a federated job are out of range. Name at "
            "least one, and not more than the description allows.",
            participants=ANY,
        ),
        when(
            "Jobs can be nested only so deep, and this one would be generation "
            "{generations:count}. Choose another parent.",
            generations=ANY,
        ),
        when(
            "A job has at most {most:count} references, and {references:count} were given. Send "
            "fewer.",
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
            "A licence has 1 to {at_most:count} seats, not {seats:count}. Correct the number.",
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
            "Send fewer.",
            workloads=ANY,
        ),
        when(
            "There is no availability tier {availability_min_tier:count}. Choose one that the "
            "description lists.",
            availability_min_tier=ANY,
        ),
        when(
            "{nodes:nodes} share this revenue, and the most is {at_most:count}. Ask the operator.",
            nodes=ANY,
        ),
        when(
            "The tariff prices {meter:text} per {per:count} units, which is out of range. "
            "Correct it.",
            meter=ANY,
        ),
        when(
            "The SLA class {sla_class:text} has {tiers:count} tiers that are too many or out of "
            "order. Order them by falling availability and rising credit.",
            sla_class=ANY,
            tiers=ANY,
        ),
        when("There are too many entries; the most is {at_most:count}. Send fewer.", rows=ANY),
        when(
            "{owners:count} owners were given; the most is {at_most:count}. Send fewer.", owners=ANY
        ),
        when(
            "{tasks:count} tasks are too many; the most is {at_most:count}. Push them in "
            "smaller groups, or wait until some are done.",
            tasks=ANY,
        ),
        when(
            "{types:count} types of events were given; the most is {at_most:count}. Send fewer.",
            types=ANY,
        ),
        when(
            "The number is above the most that is allowed, {at_most:count}. Choose less.",
            at_most=ANY,
        ),
        "A number is out of range. Choose one that the field's description allows.",
    ),
}
