"""The command ``fuda`` in a process of its own: the script, and ``python -m fuda``."""

from fuda.runtime.interrupts import end_on_signals


def main() -> None:
    """Run the command."""
    end_on_signals()
    from fuda.cli import main as command  # takes a while, and may be interrupted

    command()


if __name__ == "__main__":
    main()
