"""`python -m evolvingdp` is the command `evolvingdp`."""

from evolvingdp.publish.cli import main

main(prog_name="evolvingdp")
