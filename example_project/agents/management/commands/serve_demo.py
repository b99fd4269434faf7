from __future__ import annotations

from typing import Any

from django.contrib.staticfiles.management.commands import runserver
from django.urls import reverse

from example_project.agents.demo import LOGIN, PASSWORD
from example_project.agents.jobs import MODELS


class Command(runserver.Command):
    help = "Serve the admin and the API of the demo, and say where."

    def handle(self, *args: Any, **options: Any) -> None:
        options["use_reloader"] = False
        options["skip_checks"] = True  # build_demo has just made them
        super().handle(*args, **options)

    def on_bind(self, server_port: int) -> None:
        """Called when the port is ours: only now are the addresses true."""
        root = f"http://127.0.0.1:{server_port}"
        lines = ["", f"  Admin               {root}{reverse('admin:index')}"]
        for model in MODELS:
            address = root + reverse(f"admin:agents_{model._meta.model_name}_changelist")
            lines.append(f"    {model._meta.db_table:<18}{address}")
        lines.append(f"  API                 {root}{reverse('api-root')}")
        for model in MODELS:
            address = root + reverse(f"{model._meta.model_name}-list")
            lines.append(f"    {model._meta.db_table:<18}{address}")
        lines.append(f"    schema            {root}{reverse('schema')}")
        lines += [f"  Login               {LOGIN}, password {PASSWORD}", ""]
        lines += ["Ctrl-C stops the server.", ""]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()
