from __future__ import annotations

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "example_project.agents"
    label = "agents"
    verbose_name = "Agents"
