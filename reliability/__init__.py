"""Campaigns that hold the promises of reliability, one module each: ``python -m reliability.NAME``."""
