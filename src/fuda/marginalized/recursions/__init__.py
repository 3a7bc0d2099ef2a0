"""The recursions of the marginalized kernel, one module per shape or prior."""
