"""Ask for two things at a time: the cheapest offer, and how many leases run."""

import asyncio
import os

from tallystick_client import AsyncClient, Retry

PATIENT = Retry(tries=6, longest_seconds=60)


async def cheapest(tallystick: AsyncClient) -> int | None:
    """Micro-credits for an hour of one GPU."""
    offers = [one async for one in tallystick.iter_offers()]
    return min((int(one["price_per_gpu_hour"]["units"]) for one in offers), default=None)


async def running(tallystick: AsyncClient) -> int:
    return len([one async for one in tallystick.iter_leases(state="active")])


async def main() -> None:
    url, key = os.environ["TALLYSTICK_URL"], os.environ["TALLYSTICK_API_KEY"]
    async with AsyncClient(url, key, retry=PATIENT) as tallystick:
        price, leases = await asyncio.gather(cheapest(tallystick), running(tallystick))
    print("cheapest", price, "running", leases)


if __name__ == "__main__":
    asyncio.run(main())
