"""Settings of the example: one SQLite file, served to this machine only."""

from __future__ import annotations

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
DEMO_DIR = Path(os.environ.get("SOLID_RUNS_DEMO_DIR") or BASE_DIR.parent / ".demo").absolute()
# SQLite makes the file but not its folder.
DEMO_DIR.mkdir(parents=True, exist_ok=True)

SECRET_KEY = "for the demo on this machine, and for nothing else"
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "solid_runs",
    "solid_runs.ag_ui",
    "solid_runs.threads",
    "example_project.agents",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DEMO_DIR / "demo.sqlite3",
        "OPTIONS": {
            # Several processes write: the server, and a simulated agent beside it.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
        },
    }
}

ROOT_URLCONF = "example_project.urls"
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"

LOGIN_URL = "admin:login"
DEMO_TOKENS = {"demo-token": "demo"}
"""Bearer tokens of programs, and whose they are: the endpoint and the API take them."""

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
        "example_project.agents.tokens.TokenAuthentication",
    ],
}
SPECTACULAR_SETTINGS = {"TITLE": "Agent runs", "VERSION": "1", "SERVE_INCLUDE_SCHEMA": False}

SOLID_RUNS = {
    # Ruby class names, as Rails wrote them, and the models that stand for them here. The rows
    # also speak of a Reports::Quarterly, which this project has not: it is shown by its name.
    "SUBJECTS": {"Document": "agents.Document", "Agent": "agents.Agent"},
}
