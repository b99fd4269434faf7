from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from example_project.agents.demo import LOGIN, PASSWORD, TOKEN
from example_project.agents.jobs import MODELS

STOP_SECONDS = 3
"""How long streams that are still open may hold up the end of the server."""


class Server(uvicorn.Server):
    """Says where it is once the port is its own: only then are the addresses true."""

    def __init__(self, config: uvicorn.Config, on_bind: Callable[[], None]) -> None:
        self.on_bind = on_bind
        super().__init__(config)

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_bind()


class Command(BaseCommand):
    help = "Serve the admin, the API and the AG-UI endpoint of the demo, and say where."
    requires_system_checks = ()  # build_demo has just made them

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("port", type=int, nargs="?", default=8000)

    def handle(self, *, port: int, **options: Any) -> None:
        config = uvicorn.Config(
            "example_project.asgi:application",
            host="127.0.0.1",
            port=port,
            lifespan="off",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        server = Server(config, lambda: self.say_where(f"http://127.0.0.1:{port}"))
        try:
            server.run()
        except KeyboardInterrupt:
            return
        if not server.started:
            raise CommandError(f"Port {port} cannot be had.")

    def say_where(self, root: str) -> None:
        lines = ["", f"  Admin               {root}{reverse('admin:index')}"]
        for model in MODELS:
            address = root + reverse(f"admin:agents_{model._meta.model_name}_changelist")
            lines.append(f"    {model._meta.db_table:<18}{address}")
        for label, name in [("inbox", "runinterrupt"), ("AG-UI runs", "reservedrun")]:
            address = root + reverse(f"admin:solid_runs_ag_ui_{name}_changelist")
            lines.append(f"    {label:<18}{address}")
        address = root + reverse("admin:solid_runs_threads_threadrun_changelist")
        lines.append(f"    {'threads':<18}{address}")
        lines.append(f"  API                 {root}{reverse('api-root')}")
        for model in MODELS:
            address = root + reverse(f"{model._meta.model_name}-list")
            lines.append(f"    {model._meta.db_table:<18}{address}")
        for label, name in [("interrupts", "runinterrupt"), ("AG-UI runs", "reservedrun")]:
            lines.append(f"    {label:<18}{root}{reverse(f'{name}-list')}")
        lines.append(f"    {'threads':<18}{root}{reverse('threadrun-list')}")
        lines.append(f"    schema            {root}{reverse('schema')}")
        lines.append(f"  AG-UI endpoint      {root}{reverse('ag-ui-run')}")
        lines.append(f"    token             {TOKEN}, as Authorization: Bearer {TOKEN}")
        lines.append(f"    page to try it    {root}{reverse('assistant')}")
        lines.append(f"  Thread run store    {root}{reverse('thread-run-store-list')}")
        lines.append("    token             the same; typescript/solid-runs.ts is its client")
        lines += [f"  Login               {LOGIN}, password {PASSWORD}", ""]
        lines += ["Ctrl-C stops the server.", ""]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()
