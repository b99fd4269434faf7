from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from example_project.agents.api import router
from example_project.agents.endpoint import Assistant, AssistantPage, favicon

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("assistant/", AssistantPage.as_view(), name="assistant"),
    path("favicon.ico", favicon),
    path("ag-ui/", include(Assistant.urls())),
    path("api/", include(router.urls)),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
]
