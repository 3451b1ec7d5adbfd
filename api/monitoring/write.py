"""Write the files for Prometheus and Grafana anew: `python -m api.monitoring.write`."""

from __future__ import annotations

import json
from pathlib import Path

from api.monitoring import alerts
from api.monitoring.dashboard import dashboard

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "alerts.yml"
PAGE = DEPLOY / "grafana" / "tallystick.json"


def page() -> str:
    """The text of the page."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    for file, text in ((RULES, alerts.rules()), (PAGE, page())):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
