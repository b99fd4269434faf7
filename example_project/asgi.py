"""What an ASGI server serves. The static files are Django's own way of a demo with DEBUG."""

from __future__ import annotations

import os

from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

from solid_runs.ag_ui.asgi import ending_runs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

application = ending_runs(ASGIStaticFilesHandler(get_asgi_application()))
