"""Helpers for the tests of a host: ``tables`` for live tables, ``signals`` for status changes.

``stores`` and ``capabilities`` are what the suites of stores are made of.
"""
