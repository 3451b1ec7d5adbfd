"""A message to the operator, by mail and by chat; where nothing is set, only the log has it.

Mail goes over SMTP with TLS where the server offers it, and always where the address is smtps; the
chat gets `{"text": ...}`, which Slack, Mattermost, Rocket.Chat and Discord's Slack address take.
"""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

from api.settings import Settings

logger = logging.getLogger(__name__)

SECONDS_MAX = 10.0


class NoticeNotSent(Exception):
    """No way to the operator took the message; it is tried again."""


def send(settings: Settings, subject: str, text: str) -> None:
    """Tell the operator by every way that is set; one that took it is enough, or it would be told
    again and again there while the other is away. Raises NoticeNotSent when none did.
    """
    went = tried(settings, subject, text)
    failed = "; ".join(f"{way}: {error}" for way, error in went.items() if error is not None)
    logger.log(logging.WARNING if went else logging.INFO, "%s", subject)
    if failed and None not in went.values():
        raise NoticeNotSent(failed)
    if failed:
        logger.warning("%s was not told by %s", subject, failed)


def tried(settings: Settings, subject: str, text: str) -> dict[str, str | None]:
    """What became of a message by each way that is set: None where it was taken, else the kind of
    the error. Its text may hold the address, which is a secret.
    """
    went: dict[str, str | None] = {}
    if settings.alert_mail_to is not None:
        went["mail"] = _error_of(lambda: _mail(settings, subject, text))
    if settings.alert_chat_url is not None:
        went["chat"] = _error_of(lambda: _chat(settings, subject, text))
    return went


def _error_of(act: Callable[[], None]) -> str | None:
    import httpx  # most servers tell nobody

    try:
        act()
    except (OSError, ValueError, smtplib.SMTPException, httpx.HTTPError, httpx.InvalidURL) as error:
        return type(error).__name__
    return None


def _chat(settings: Settings, subject: str, text: str) -> None:
    import httpx

    assert settings.alert_chat_url is not None
    told = {"text": f"{subject}\n{text}"}
    httpx.post(settings.alert_chat_url, json=told, timeout=SECONDS_MAX).raise_for_status()


def _mail(settings: Settings, subject: str, text: str) -> None:
    assert settings.smtp_url is not None
    assert settings.alert_mail_from is not None
    assert settings.alert_mail_to is not None
    message = EmailMessage()
    message["Subject"] = subject
    message["From"] = settings.alert_mail_from
    message["To"] = settings.alert_mail_to
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain="tallystick.invalid")
    message.set_content(text)
    address = urlsplit(settings.smtp_url)
    host, context = address.hostname or "", ssl.create_default_context()
    if address.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, address.port or 465, timeout=SECONDS_MAX, context=context
        )
    else:
        server = smtplib.SMTP(host, address.port or 587, timeout=SECONDS_MAX)
    with server:
        server.ehlo()
        if address.scheme == "smtp" and server.has_extn("starttls"):
            server.starttls(context=context)
        if address.username is not None:
            if not isinstance(server.sock, ssl.SSLSocket):
                raise smtplib.SMTPException("the server offers no TLS for a password")
            server.login(unquote(address.username), unquote(address.password or ""))
        server.send_message(message)
