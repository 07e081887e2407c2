"""The wheel carries data/ inside the package, where an installed library looks for it; all else is in pyproject.toml."""

from pathlib import Path
from shutil import copyfile, rmtree

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithData(build_py):
    def run(self):
        if not self.editable_mode:
            rmtree(self.build_lib, ignore_errors=True)  # an earlier build's may have modules that are gone
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "evolvingdp", "data")
            target.mkdir(parents=True, exist_ok=True)
            for table in Path(__file__).parent.glob("data/*.csv*"):
                copyfile(table, target / table.name)


setup(cmdclass={"build_py": BuildWithData})
