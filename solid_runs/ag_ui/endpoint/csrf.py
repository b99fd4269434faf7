"""Whether a request was made by a page of this site, where its credentials do not say so."""

from __future__ import annotations

from typing import Any, Final, cast

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

AMBIENT: Final = frozenset({"basic", "digest", "negotiate", "ntlm"})
"""Schemes of Authorization that a browser sends with requests of any page."""


class _Check(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _no_response(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def is_ambient(request: HttpRequest) -> bool:
    """Whether a browser would have sent the credentials of this request for any page.

    Cookies, REMOTE_USER and HTTP Basic are such. A token in the Authorization header is not: no
    other page can set one.
    """
    scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
    if scheme and scheme not in AMBIENT:
        return False
    return bool(scheme or request.COOKIES or "REMOTE_USER" in request.META)


async def csrf_failure(request: HttpRequest) -> str | None:
    """Why the request may come from another page; None when it bears the token in X-CSRFToken."""

    def reason() -> str | None:
        check = _Check(_no_response)
        check.process_request(request)
        return cast(str | None, check.process_view(request, _no_response, (), {}))

    return await sync_to_async(reason)()
