"""How does a fact become durable? Commands and reports go in through one door; facts in their
order, and states folded from them, come out.
"""

__all__ = (
    "append",
    "chain",
    "codec",
    "durable",
    "fresh",
    "full_disk",
    "handle",
    "lane_logs",
    "lane_map",
    "lane_store",
    "lanes",
    "market",
    "pgbin",
    "rebooked",
    "recorder",
    "report_form",
    "report_rows",
    "usage",
    "usage_reads",
)
