"""Helpers for the tests of a host: ``tables`` for live tables, ``signals`` for status changes."""
