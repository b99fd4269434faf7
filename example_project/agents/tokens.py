"""Who makes a request: a person with a session, or a program with a token of the demo.

A token is a name in the setting ``DEMO_TOKENS``, which says whose it is. That is good enough for a
demo on one machine; a real project has tokens that can be revoked and that are stored hashed.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed


def bearer_of(request: HttpRequest) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def name_of(token: str) -> str | None:
    """The user whose token it is."""
    name: str | None = settings.DEMO_TOKENS.get(token)
    return name


async def user_of(request: HttpRequest) -> Any | None:
    token = bearer_of(request)
    if token is None:
        user = await request.auser()
        return user if user.is_authenticated else None
    users: Any = get_user_model().objects.filter(is_active=True)
    return await users.filter(username=name_of(token)).afirst()


class TokenAuthentication(BaseAuthentication):
    """The same for the API."""

    def authenticate(self, request: Any) -> tuple[AbstractBaseUser, str] | None:
        token = bearer_of(request)
        if token is None:
            return None
        users: Any = get_user_model().objects.filter(is_active=True)
        user = users.filter(username=name_of(token)).first()
        if user is None:
            raise AuthenticationFailed("This is nobody's token.")
        return user, token

    def authenticate_header(self, request: Any) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):
    """What the API's schema says of it."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
