"""The verified defects of the reference editor: each input here is lost, cut or half applied there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from labcoat.editor import UNCHANGED, apply_reply
from labcoat.tree import Code

TRAIN = "import math\n\nlr = 0.1\nsteps = 9\n\n\ndef fit(x):\n    return x * lr\n"
CONFIG = '{"split": 0.2}\n'
BASE = Code.of({"train.py": TRAIN, "a/model.py": "width = 1\n", "b/model.py": "width = 2\n", "split.json": CONFIG})


def edit(reply: str) -> tuple[dict[str, str], str]:
    """The files that changed, and the reason of a rejection."""
    edited = apply_reply(reply, BASE, lambda path: True)
    changed = {path: edited.code.text(path) for path in edited.code if edited.code[path] != BASE[path]}
    return changed, edited.reason


@dataclass(frozen=True)
class Applied:
    name: str
    reply: str
    changed: dict[str, str]


APPLIED = [
    Applied(
        "one header, two blocks",
        """\
### FILE: train.py
<<<<<<< SEARCH
lr = 0.1
=======
lr = 0.2
>>>>>>> REPLACE
<<<<<<< SEARCH
steps = 9
=======
steps = 10
>>>>>>> REPLACE
""",
        {"train.py": TRAIN.replace("0.1", "0.2").replace("9", "10")},
    ),
    Applied(
        "an empty replacement deletes",
        """\
### FILE: train.py
<<<<<<< SEARCH
steps = 9
=======
>>>>>>> REPLACE
""",
        {"train.py": TRAIN.replace("steps = 9\n", "")},
    ),
    Applied(
        "a block inside a fence",
        """\
### FILE: train.py
```python
<<<<<<< SEARCH
lr = 0.1
=======
lr = 0.2
>>>>>>> REPLACE
```
""",
        {"train.py": TRAIN.replace("0.1", "0.2")},
    ),
    Applied(
        "a whole file with backticks in a docstring",
        '''\
### FILE: train.py
```python
"""Use it like this:

```
fit(1)
```
"""
lr = 0.3
```
That is all. Run it with
```
python train.py
```
''',
        {"train.py": '"""Use it like this:\n\n```\nfit(1)\n```\n"""\nlr = 0.3\n'},
    ),
    Applied("the fence tag py", "### FILE: train.py\n```py\nlr = 0.3\n```", {"train.py": "lr = 0.3\n"}),
    Applied(
        "the fence tag json", '### FILE: split.json\n```json\n{"split": 0.3}\n```', {"split.json": '{"split": 0.3}\n'}
    ),
    Applied("a path in backticks", "### FILE: `train.py`\n```\nlr = 0.3\n```", {"train.py": "lr = 0.3\n"}),
    Applied("a bold header", "**FILE: train.py**\n```\nlr = 0.3\n```", {"train.py": "lr = 0.3\n"}),
    Applied(
        "the second of two files with one basename",
        "### FILE: b/model.py\n```\nwidth = 3\n```",
        {"b/model.py": "width = 3\n"},
    ),
    Applied(
        "blocks that are valid only together",
        """\
### FILE: train.py
<<<<<<< SEARCH
lr = 0.1
=======
lr = (
    0.1
>>>>>>> REPLACE
<<<<<<< SEARCH
steps = 9
=======
)
steps = 9
>>>>>>> REPLACE
""",
        {"train.py": TRAIN.replace("lr = 0.1\n", "lr = (\n    0.1\n)\n")},
    ),
]


@pytest.mark.parametrize("case", APPLIED, ids=lambda case: case.name)
def test_is_applied(case: Applied) -> None:
    assert edit(case.reply) == (case.changed, "")


def test_a_basename_that_two_files_share_is_no_name() -> None:
    changed, reason = edit("### FILE: model.py\n<<<<<<< SEARCH\nwidth = 1\n=======\nwidth = 3\n>>>>>>> REPLACE")
    assert not changed
    assert "model.py can mean a/model.py or b/model.py" in reason


def test_nothing_is_applied_if_the_last_of_several_blocks_does_not_fit() -> None:
    changed, reason = edit("""\
### FILE: train.py
<<<<<<< SEARCH
lr = 0.1
=======
lr = 0.2
>>>>>>> REPLACE
### FILE: a/model.py
<<<<<<< SEARCH
depth = 1
=======
depth = 2
>>>>>>> REPLACE
""")
    assert not changed
    assert reason.startswith("SEARCH/REPLACE block 2 (a/model.py): the SEARCH text is not in the file.")


@pytest.mark.parametrize(
    "reply",
    [
        f"### FILE: train.py\n```python\n{TRAIN}```",
        f"### FILE: train.py\n```python\n{TRAIN}\n\n```",
        "### FILE: train.py\n<<<<<<< SEARCH\nlr = 0.1\n=======\nlr = 0.1\n>>>>>>> REPLACE",
    ],
    ids=["the same file", "the same file and blank lines at its end", "the same lines"],
)
def test_code_that_stays_as_it_was_is_no_success(reply: str) -> None:
    assert edit(reply) == ({}, UNCHANGED)


@pytest.mark.parametrize(
    "line", ["os.remove('x')", "shutil.rmtree('x')", "eval('1')", "subprocess.run(['ls'])", "path.unlink()"]
)
def test_no_word_is_forbidden(line: str) -> None:
    """What code may do is the sandbox's business; a list of words stops nobody but the innocent."""
    assert edit(f"### FILE: train.py\n```\n{line}\n```") == ({"train.py": f"{line}\n"}, "")
