"""What the stores have in common: who may use them, whose runs they see, what they read."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from rest_framework.authentication import TokenAuthentication
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.viewsets import ViewSet

from solid_runs.rest_framework.strict import check_parameters
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.records import FIELDS
from solid_runs.threads.rest_framework.bodies import NOTHING, Fields
from solid_runs.threads.rest_framework.strict_json import (
    BODY,
    NullJSONRenderer,
    StrictJSONParser,
    check_query_text,
    shown_path,
)


class StoreViewSet(ViewSet):
    """A store for one program that is trusted with all of one scope; JSON in, JSON out.

    Whoever presents a token reads and writes every run of get_scope(), by default the runs of the
    token's user and of nobody else.
    """

    authentication_classes = [TokenAuthentication]
    permission_classes = [IsAuthenticated]
    parser_classes: list[type[BaseParser]] = [StrictJSONParser]
    renderer_classes = [NullJSONRenderer]

    def get_scope(self) -> Any:
        """Whose runs ``self.request`` may see: a str, an int or a UUID."""
        return self.request.user.pk

    def get_store(self) -> Any:
        """The store that the request goes to, bound to get_scope()."""
        raise NotImplementedError(f"{type(self).__name__} does not say which store it is over.")

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        """Refuse while the addresses are loaded, so that ``manage.py check`` tells of it."""
        classes = initkwargs.get("authentication_classes", cls.authentication_classes)
        installed = apps.is_installed("rest_framework.authtoken")
        if TokenAuthentication in classes and not installed:
            raise ImproperlyConfigured(
                f"{cls.__name__} lets in who has a token, but there are none: add "
                f"'rest_framework.authtoken' to INSTALLED_APPS and migrate, or set the "
                f"authentication_classes of {cls.__name__}."
            )
        return super().as_view(actions, **initkwargs)

    @property
    def store(self) -> Any:
        try:
            return self.get_store()
        except InvalidRecord as error:
            if isinstance(self.get_scope(), str):  # a host may take it out of the request
                raise ValidationError({"scope": [error.problem]}) from error
            raise ImproperlyConfigured(
                f"{type(self).__name__}.get_scope() gave nothing that names a tenant: {error}"
            ) from error

    def query(self, fields: Fields = NOTHING) -> dict[str, Any]:
        """The parameters of the query, checked; one that would have no effect is refused."""
        request: Request = self.request
        check_query_text(request.META.get("QUERY_STRING", ""))
        suffix = str(api_settings.URL_FORMAT_OVERRIDE)
        known = {*fields.checks, suffix}
        check_parameters(request, known, single=known)
        asked = request.query_params.dict()
        asked.pop(suffix, None)
        return fields.checked(asked)

    def body(self, fields: Fields) -> dict[str, Any]:
        """The body of a request without parameters, checked."""
        self.query()
        return self.json(fields)

    def json(self, fields: Fields) -> dict[str, Any]:
        data: Any = self.request.data
        if self.request.stream is None:
            raise InvalidRecord(BODY, "Send an object of JSON, and its Content-Length.")
        return fields.checked(data)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, InvalidRecord):
            field, dot, below = exc.field.partition(".")
            named = f"{FIELDS.get(field, field)}{dot}{below}"
            exc = ValidationError({shown_path(named): [exc.problem]})
        return super().handle_exception(exc)


def refuse(code: str, message: str, **facts: Any) -> Response:
    return Response({"code": code, "message": message, **facts}, status=409)
