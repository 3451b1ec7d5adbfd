"""Take deliveries of a webhook, and believe only what the server signed."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

BYTES_MAX = 100_000


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), BYTES_MAX))
        try:
            fact = Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, dict(self.headers.items()))
        except WebhookVerificationError:
            self.send_error(401)
            return
        # The same fact may come twice, with the same id: keep the ids that you have handled.
        print(self.headers["webhook-id"], fact["type"], fact["position"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print facts alone."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", 8000), Receiver).serve_forever()
