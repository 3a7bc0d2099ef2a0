"""The learning algorithms of the papers, one per module: losses, perceptrons, margins."""
