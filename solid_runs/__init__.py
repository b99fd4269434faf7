"""Durable records of AI-agent runs for Django."""

__version__ = "0.1.0"
