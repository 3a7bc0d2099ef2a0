"""Campaigns for the promises of docs/reliability.md, each run as `python -m reliability.NAME`."""
