"""Plots of models, predictions and trainings.

Every function draws into `ax`, or into a new figure, and returns the Axes, a plain object of
matplotlib. New figures have a transparent background, grey text and colours that can be
distinguished with any colour vision, so that they can be read on white and on black. matplotlib
comes with the extra ``plots``.
"""

from fuda.plots.kernels import kernel_heatmap as kernel_heatmap
from fuda.plots.kernels import mixing_effect as mixing_effect
from fuda.plots.motifs import motif as motif
from fuda.plots.scores import calibration as calibration
from fuda.plots.scores import confusion as confusion
from fuda.plots.scores import learning_curves as learning_curves
from fuda.plots.training import convergence as convergence
from fuda.plots.weights import feature_weights as feature_weights
from fuda.plots.weights import transition_weights as transition_weights

__all__ = [
    "calibration",
    "confusion",
    "convergence",
    "feature_weights",
    "kernel_heatmap",
    "learning_curves",
    "mixing_effect",
    "motif",
    "transition_weights",
]
