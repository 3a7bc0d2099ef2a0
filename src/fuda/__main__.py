"""``python -m fuda`` is the command ``fuda``."""

from fuda.cli import main

if __name__ == "__main__":
    main()
