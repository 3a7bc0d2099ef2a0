"""Data of the tests of learning more: what is fitted, and one structure that comes later."""

from fuda import Tree

X = [
    ["Ana", "lives", "in", "Lima"],
    ["Lima", "is", "big"],
    ["Rosa", "sees", "Lima"],
    ["he", "is", "in", "Rome"],
]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "LOC"], ["O", "O", "O", "LOC"]]
NEW = [["Paris", "sees", "Rome", "in", "May"]]
NEW_Y = [["PER", "O", "LOC", "O", "O"]]
TREES = [Tree(["sees", "Ana", "Lima"], [-1, 0, 0]), Tree(["is", "Lima", "big"], [-1, 0, 0])]
TREE_Y = [["O", "PER", "LOC"], ["O", "LOC", "O"]]
