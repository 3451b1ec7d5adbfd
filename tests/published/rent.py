"""Rent a GPU for at most 2.50 CREDIT an hour, and give it back."""

import os

from tallystick_client import ApiProblem, Client
from tallystick_client.forms import LeaseRequest

WANTED: LeaseRequest = {
    "job": {"image": "work", "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "2500000"}}
}


def main() -> None:
    with Client(os.environ["TALLYSTICK_URL"], os.environ["TALLYSTICK_API_KEY"]) as tallystick:
        try:
            lease = tallystick.open_lease(WANTED, idempotency_key="first-experiment")
        except ApiProblem as problem:
            raise SystemExit(f"no GPU: {problem.detail} ({problem.code})") from None
        print("lease", lease["lease_id"], "on", lease.get("node_id"))
        # ... your program talks to the GPU here ...
        closed = tallystick.close_lease(lease["lease_id"], {})
        print("lease", closed["lease_id"], closed["state"])


if __name__ == "__main__":
    main()
