"""The blocks of Python on the pages of the documentation run, in order and in one namespace for each page."""

import pathlib
import re

import numpy as np
import pytest

DOCS = pathlib.Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["python.md"])
def test_blocks_run(page, tmp_path, monkeypatch):
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    # Programs that the page shows with a name above them are files of its blocks.
    for name, program in re.findall(r"^`([\w./]+\.spmd)`:\n\n```spmd\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(program)
    monkeypatch.chdir(tmp_path)
    names = {"np": np}
    for block in blocks:
        if "import jax" in block:
            pytest.importorskip("jax")
        exec(compile("\n".join(map(checked, block.splitlines())), page, "exec"), names)


def checked(line):
    """A line that compares its value with the comment `# -> VALUE`, if it has one."""
    found = re.match(r"(\s*)(.+?)\s+# -> (.*)$", line)
    return f"{found[1]}assert str({found[2]}) == {found[3]!r}, str({found[2]})" if found else line
