"""The command `evolvingdp`, which `python -m evolvingdp` is, too."""

import signal
import sys


def main() -> None:
    """Ctrl-C ends it at once, without Python's traceback, also before the command line listens for it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from evolvingdp.book import cli
    except EOFError:
        from evolvingdp.book.bytecode import mended

        if line := mended():
            sys.stderr.write(f"Error: {line}\n")
            sys.exit(3)
        raise

    cli.main(prog_name="evolvingdp")


if __name__ == "__main__":
    main()
