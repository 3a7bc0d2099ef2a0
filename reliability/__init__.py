"""Campaigns that hold the promises of docs/reliability.md; each runs as `python -m reliability.NAME`."""
