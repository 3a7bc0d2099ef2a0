"""Files of models, of the structures within models, and of the state of a training."""
