"""The page on which a person labels data while a model learns: store, teacher and server."""
