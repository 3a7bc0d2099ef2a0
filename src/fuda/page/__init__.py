"""The page on which a person labels data while a model learns: its store, its teacher, its server."""
