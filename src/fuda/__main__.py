"""The command ``fuda`` in a process of its own: the script, and ``python -m fuda``."""

from fuda.interrupts import own_process


def main() -> None:
    """Run the command."""
    own_process()
    from fuda.cli import main as command  # takes a while, and may be interrupted

    command()


if __name__ == "__main__":
    main()
