"""Write a month's charges into a file, and print what each lease has cost so far."""

import os
import sys
from decimal import Decimal
from pathlib import Path

from tallystick_client import Client
from tallystick_client.forms import Money


def credits_of(money: Money) -> Decimal:
    """The units of CREDIT are micro-credits. Decimal is exact, float is not."""
    return Decimal(money["units"]) / 1_000_000


def main(month: str) -> None:
    with Client(os.environ["TALLYSTICK_URL"], os.environ["TALLYSTICK_API_KEY"]) as tallystick:
        account_id = next(tallystick.iter_accounts())["account_id"]
        for lease in tallystick.iter_leases(limit=100):
            charges = tallystick.iter_lease_charges(lease["lease_id"])
            print(lease["lease_id"], sum((credits_of(one["charge"]) for one in charges), Decimal()))
        with Path(f"{month}.csv").open("wb") as file:
            file.writelines(
                tallystick.download(f"/v1/accounts/{account_id}/statements/{month}.csv")
            )


if __name__ == "__main__":
    main(sys.argv[1])
