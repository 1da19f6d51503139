"""Python functions as implementations that the benchmark program Calorimeter measures."""

from calorimeter.registry import Case, Unsupported, implementation

__all__ = ["Case", "Unsupported", "implementation"]
__version__ = "0.1.0"
