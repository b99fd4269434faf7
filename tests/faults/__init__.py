"""The faults that people met with comparable products, each as an input for this one.

Faults told elsewhere: F17 (cancel against finish in processes), F20 (locks in two orders) and F22
(writers on one SQLite file) in tests/test_races.py; F21 (a row on another alias) in the tests of
several databases; F51 (tables of unmanaged models) in tests/test_testing.py.
"""
