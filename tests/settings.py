"""One suite over three databases: SOLID_RUNS_DB is sqlite, postgresql or mariadb.

``default`` and ``other`` are two databases of that vendor, so that every test can hold the
product to the alias it was given.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VENDOR = os.environ.get("SOLID_RUNS_DB", "sqlite")
SUFFIX = os.environ.get("SOLID_RUNS_TEST_SUFFIX", "")
BASE_DIR = Path(__file__).resolve().parent


def database(alias: str) -> dict[str, object]:
    name = f"solid_runs{SUFFIX}_{alias}"
    if VENDOR == "postgresql":
        return {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ.get("PGHOST", "127.0.0.1"),
            "PORT": os.environ.get("PGPORT", "5432"),
            "USER": os.environ.get("PGUSER", "postgres"),
            "PASSWORD": os.environ.get("PGPASSWORD", ""),
            "NAME": "postgres",
            "TEST": {"NAME": name},
        }
    if VENDOR == "mariadb":
        return {
            "ENGINE": "django.db.backends.mysql",
            "HOST": os.environ.get("MYSQL_HOST", "127.0.0.1"),
            "PORT": os.environ.get("MYSQL_PORT", "3306"),
            "USER": os.environ.get("MYSQL_USER", "root"),
            "PASSWORD": os.environ.get("MYSQL_PASSWORD", ""),
            "NAME": "mysql",
            "OPTIONS": {"charset": "utf8mb4"},
            "TEST": {"NAME": name, "CHARSET": "utf8mb4"},
        }
    if VENDOR == "sqlite":
        # Files, not memory: the races use real processes.
        folder = os.environ.get("SOLID_RUNS_TEST_DIR", tempfile.gettempdir())
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": f"{folder}/{name}_{os.getuid()}.sqlite3",
            "TEST": {"NAME": f"{folder}/{name}_{os.getuid()}_test.sqlite3"},
            "OPTIONS": {"timeout": 30},
        }
    raise ValueError(f"SOLID_RUNS_DB is {VENDOR!r}; use sqlite, postgresql or mariadb.")


DATABASES = {"default": database("default"), "other": database("other")}

SECRET_KEY = "only for tests"
DEBUG = False
ALLOWED_HOSTS = ["*"]
USE_TZ = True
TIME_ZONE = "Asia/Tokyo"
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "django_filters",
    "drf_spectacular",
    "solid_runs",
    "solid_runs.ag_ui",
    "solid_runs.threads",
    "tests",
]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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

REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}

SOLID_RUNS = {"SUBJECTS": {"Document": "tests.Document"}}
