"""`python -m evolvingdp` is the command `evolvingdp`."""

from evolvingdp.book.cli import main

main(prog_name="evolvingdp")
