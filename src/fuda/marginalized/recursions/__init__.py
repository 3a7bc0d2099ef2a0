"""The recursions of the marginalized kernel, one file per shape or prior."""
