"""The papers' learning algorithms, one file each: losses, perceptrons, margins."""
