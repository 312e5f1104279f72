"""Patch: read what a model's reply asks for, from its text alone.

A reply is read line by line, once. Whatever is neither a header nor a block is prose and is passed over, and so are
``<think>`` sections. Two kinds of block exist under a header, and may be mixed:

* the first fenced block after a header is the whole file;
* SEARCH/REPLACE blocks, with or without fences around one or all of them, change parts of the file that the last
  header named.

SEARCH/REPLACE blocks before any header, and the only fenced block of a reply that has no header, get the path "":
``apply`` decides whether it is clear which file they mean. A fenced block without a header of its own next to named
ones is an example or a command, and is passed over.
"""

from __future__ import annotations

from labcoat.editor import blocks, headers
from labcoat.editor.fences import Fence
from labcoat.editor.operations import FORMATS, Delete, Operation, Patch, Rejected, Replace, WholeFile

LONGEST_REPLY = 1_000_000  # characters, about 250,000 tokens: no useful answer is longer
LONGEST_REMARK = 3  # lines; more text than this under a header, in no block, is code that lacks its fence

_THOUGHT_BEGINS = ("<think>", "<thinking>")
_THOUGHT_ENDS = ("</think>", "</thinking>")
_DIFFS = {"diff", "patch", "udiff"}
_PYTHON_LANGUAGES = {"", "py", "python", "python3"}
_QUOTED_LIKE_PYTHON = (".py", ".pyi", ".toml")  # files whose triple-quoted strings may hold fences


def parse(reply: str) -> Patch:
    """Read the operations that ``reply`` asks for.

    Raises:
        Rejected: if there are none, or if one is incomplete or can be read in two ways.
    """
    if len(reply) > LONGEST_REPLY:
        raise Rejected(f"The reply has {len(reply):,} characters, the limit is {LONGEST_REPLY:,}. {FORMATS}")
    return _Scanner(reply).patch()


class _Scanner:
    """One pass over the lines of a reply. Every method reads on from ``at``; none goes back behind it."""

    def __init__(self, reply: str) -> None:
        self.lines = reply.replace("\r\n", "\n").split("\n")
        self.at = 0
        self.forget()

    def forget(self) -> None:
        """What came before was thought, not answer."""
        self.operations: list[Operation] = []
        self.count = 0  # of SEARCH/REPLACE blocks
        self.orphans: list[WholeFile] = []  # fenced blocks without a header
        self.wrappers: list[Fence] = []  # open fences that hold headers or SEARCH/REPLACE blocks
        self.path = ""  # of the last header
        self.waiting = False  # whether that header has no block yet
        self.loose = 0  # lines of prose since that header
        self.before = ""  # the last line of prose if nothing but blank lines came since

    def patch(self) -> Patch:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            text = line.strip()
            if not text:
                continue
            if text.startswith(_THOUGHT_BEGINS):
                self.skip_thought()
            elif text.startswith(_THOUGHT_ENDS) or text.endswith(_THOUGHT_ENDS):
                self.skip_thought()
                self.forget()  # some servers swallow the opening tag
            elif blocks.begins(line):
                self.block(line)
            elif self.closes_wrapper(line):
                self.wrappers.pop()
            elif fence := Fence.opening(line):
                self.fence(fence)
            else:
                self.prose(line)
        self.leave_header()
        if self.operations:
            return Patch(tuple(self.operations))
        if len(self.orphans) == 1:
            return Patch((self.orphans[0],))
        found = f"{len(self.orphans)} fenced blocks and none names its file" if self.orphans else "no edit"
        raise Rejected(f"The reply holds {found}. {FORMATS}")

    def closes_wrapper(self, line: str) -> bool:
        if not self.wrappers or not self.wrappers[-1].closed_by(line):
            return False
        return not self.waiting and not headers.lone_path(self.before)  # after a header, it opens the file

    def skip_thought(self) -> None:
        """Go on behind the next closing tag, from the present line on; the answer may share the tag's line."""
        for at in range(self.at - 1, len(self.lines)):
            for tag in _THOUGHT_ENDS:
                if tag in self.lines[at]:
                    self.at, self.lines[at] = at, self.lines[at].rpartition(tag)[2]
                    return
        self.at = len(self.lines)

    def prose(self, line: str) -> None:
        """A line outside blocks: a header, or nothing."""
        self.before = line
        header = headers.explicit(line)
        if header is None:
            self.loose += 1
            return
        self.leave_header()
        self.enter(header.path)
        if header.delete:
            self.operations.append(Delete(header.path))
            self.path, self.waiting = "", False

    def enter(self, path: str) -> None:
        self.path, self.waiting, self.loose, self.before = path, True, 0, ""

    def leave_header(self) -> None:
        if self.waiting and self.loose > LONGEST_REMARK:
            raise Rejected(f"The text under the header of {self.path} is in no block. {FORMATS}")

    def block(self, opening: str) -> None:
        """A SEARCH/REPLACE block, after its opening line."""
        if path := headers.lone_path(self.before):
            self.enter(path)
        self.count += 1
        name = f"SEARCH/REPLACE block {self.count}" + (f" ({self.path})" if self.path else "")
        end = self.at
        while end < len(self.lines) and not blocks.ends(self.lines[end]) and not blocks.begins(self.lines[end]):
            end += 1
        if end == len(self.lines) or blocks.begins(self.lines[end]):
            raise Rejected(f'{name} has no ">>>>>>> REPLACE" line: it is incomplete, or the reply was cut off.')
        search, replace = blocks.halves(opening, self.lines[self.at : end], name)
        self.operations.append(Replace(self.path, search, replace))
        self.waiting, self.before, self.at = False, "", end + 1

    def fence(self, fence: Fence) -> None:
        """A fenced block, after its opening line."""
        if path := headers.lone_path(self.before):
            self.enter(path)
        elif not self.waiting and (path := headers.in_info(fence.info) or self.header_inside()):
            self.enter(path)
        end = fence.end(self.lines, self.at, self.is_quoted_like_python(fence), self.is_only_wrapped)
        if end == len(self.lines) and self.waiting:
            raise Rejected(
                f"The fenced block for {self.path} is never closed: the reply was cut off, or the code has a "
                "triple-quoted string without an end. Give the whole file again and close the block."
            )
        content = self.lines[self.at : end]
        self.at, self.before = end + 1, ""
        if end == len(self.lines):
            return
        if not fence.closed_by(self.lines[end]):
            self.wrappers.append(fence)
            for line in filter(str.strip, content):
                self.prose(line)
            self.at = end
        elif not self.waiting:
            self.orphans.append(WholeFile("", fence.content(content)))
        elif fence.language in _DIFFS:
            raise Rejected(f"The block for {self.path} is a diff, which cannot be applied. {FORMATS}")
        else:
            self.operations.append(WholeFile(self.path, fence.content(content)))
            self.waiting = False

    def header_inside(self) -> str:
        """The path of a header that is the first line of a fenced block and its title; the line is then read."""
        first = self.skip_blank(self.at)
        header = headers.explicit(self.lines[first]) if first < len(self.lines) else None
        if header is None or header.delete or not header.marked:
            return ""
        second = self.skip_blank(first + 1)
        if second < len(self.lines) and (blocks.begins(self.lines[second]) or Fence.opening(self.lines[second])):
            return ""  # the fence is around the header and its block
        self.at = first + 1
        return header.path

    def skip_blank(self, at: int) -> int:
        while at < len(self.lines) and not self.lines[at].strip():
            at += 1
        return at

    def is_only_wrapped(self, line: str) -> bool:
        """Whether ``line``, inside a fence, shows that the fence is no file but goes around blocks or headers."""
        if self.waiting or not line.startswith(("##", "**")):
            return blocks.begins(line)
        return headers.explicit(line) is not None or headers.lone_path(line) != ""

    def is_quoted_like_python(self, fence: Fence) -> bool:
        if self.waiting and "." in self.path.rpartition("/")[2]:
            return self.path.endswith(_QUOTED_LIKE_PYTHON)
        return fence.language in _PYTHON_LANGUAGES
