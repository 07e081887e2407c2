"""The command `evolvingdp`, which `python -m evolvingdp` is, too."""

import signal


def main() -> None:
    """Ctrl-C ends it at once, without Python's traceback, also before the command line listens for it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from evolvingdp.book import cli

    cli.main(prog_name="evolvingdp")


if __name__ == "__main__":
    main()
