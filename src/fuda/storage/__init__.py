"""Files that models, their structures and the state of a training are kept in."""
