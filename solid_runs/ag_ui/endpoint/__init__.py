"""What makes an agent an AG-UI endpoint. It needs the extra ``ag-ui``."""

from __future__ import annotations

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

for package in ("ag_ui", "jsonpatch"):
    if find_spec(package) is None:
        raise ImproperlyConfigured(
            f"An AG-UI endpoint needs the package {package}: install django-solid-runs[ag-ui]."
        )
