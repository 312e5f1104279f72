"""Apply: carry a patch out on a code, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from labcoat.editor import match, paths, syntax
from labcoat.editor.operations import FORMATS, Delete, Operation, Patch, Rejected, Replace, WholeFile
from labcoat.editor.text import Style
from labcoat.tree import Code

UNCHANGED = "unchanged: the answer gives exactly the code that was there; change something"


def apply(patch: Patch, code: Code, is_editable: Callable[[str], bool]) -> Code:
    """The code after all operations of ``patch``, one after the other.

    Syntax is checked once, on the final text of every file that changed.

    Raises:
        Rejected: if an operation cannot be carried out or a file is not well-formed in the end: then nothing is
            changed. With the reason ``UNCHANGED`` if the result would be the code as it was.
    """
    work = _Work(code, is_editable)
    for operation in patch.operations:
        work.perform(operation)
    return work.result()


class _Work:
    """The files while they are worked on."""

    def __init__(self, code: Code, is_editable: Callable[[str], bool]) -> None:
        self.code = code
        self.is_editable = is_editable
        self.texts: dict[str, str | None] = {}  # of the files touched so far; None: there is no such file any more
        self.styles: dict[str, Style] = {}
        self.present = set(code)
        self.blocks = 0

    def perform(self, operation: Operation) -> None:
        """Carry out one operation on the present texts."""
        create = isinstance(operation, WholeFile) or (isinstance(operation, Replace) and not operation.search)
        path = paths.resolve(operation.path, self.present, self.is_editable, create)
        match operation:
            case WholeFile():
                self.texts[path] = self.rewritten(path, operation)
                self.present.add(path)
            case Replace():
                self.blocks += 1
                try:
                    self.texts[path] = self.replaced(path, operation)
                except Rejected as rejected:
                    raise Rejected(f"SEARCH/REPLACE block {self.blocks} ({path}): {rejected.reason}") from None
                self.present.add(path)
            case Delete():
                self.texts[path] = None
                self.present.discard(path)

    def text(self, path: str) -> str | None:
        """The present text; None if there is no such file.

        Raises:
            UnicodeDecodeError: if it is not UTF-8.
        """
        if path not in self.texts and path in self.code:
            self.texts[path], self.styles[path] = Style.split(self.code[path].read())
        return self.texts.get(path)

    def rewritten(self, path: str, operation: WholeFile) -> str:
        """The whole new text."""
        new = operation.content
        try:
            old = self.text(path) or ""
        except UnicodeDecodeError:
            old = ""
        if not new.strip() and old.strip():
            raise Rejected(f'The block for {path} is empty. Give the whole file, or "### DELETE: {path}".')
        if not operation.path and not _is_complete(path, old, new):
            raise Rejected(
                f"The reply has one fenced block without a header, and it is not clear that it is all of {path}: "
                f"it leaves out much of the file. {FORMATS}"
            )
        # Models see and write files without the blank lines at their end: to leave those out is no change.
        if new.rstrip() == old.rstrip():
            return old
        return new.rstrip("\n") + "\n" if new.strip() else ""

    def replaced(self, path: str, operation: Replace) -> str:
        """The text with one region replaced. A block with nothing to find gives a file that is new or empty."""
        try:
            text = self.text(path) or ""
        except UnicodeDecodeError:
            raise Rejected("the file is not UTF-8 text. Give the whole file.") from None
        if operation.search:
            return match.substitute(text, operation.search, operation.replace)
        if text.strip():
            raise Rejected(
                "the SEARCH text is empty. Copy the lines to replace, or a line beside the new ones, into it."
            )
        return operation.replace

    def result(self) -> Code:
        """The code with all changes, if every changed file is well-formed."""
        changes: dict[str, bytes | str | None] = {}
        problems: list[str] = []
        for path, text in self.texts.items():
            content = None if text is None else self.encoded(path, text)
            before = self.code.get(path)
            if content == (before.read() if before else None):
                continue
            changes[path] = content
            if content is not None:
                problems.append(syntax.problem(path, content) or self.misplaced(path))
        problems = list(filter(None, problems))
        if problems:
            raise Rejected("Nothing was applied, because the result has errors:\n" + "\n".join(problems))
        if not changes:
            raise Rejected(UNCHANGED)
        return self.code.put(changes)

    def encoded(self, path: str, text: str) -> bytes:
        try:
            return self.styles.get(path, Style()).join(text)
        except UnicodeEncodeError:
            raise Rejected(
                f"The new text of {path} holds a lone surrogate, which is no character. Write it anew."
            ) from None

    def misplaced(self, path: str) -> str:
        """What is wrong with the place of a file; "" if nothing is."""
        parent = next((str(p) for p in PurePosixPath(path).parents if str(p) in self.present), "")
        if parent:
            return f"{path}: {parent} is a file, not a folder."
        return f"{path}: is a folder." if any(other.startswith(f"{path}/") for other in self.present) else ""


def _is_complete(path: str, old: str, new: str) -> bool:
    """Whether ``new``, which the reply did not call a file, is one and no excerpt.

    It has at least half as many lines as the old file, and every function and class of its top level.
    """
    old_lines, new_lines = (sum(bool(line.strip()) for line in text.split("\n")) for text in (old, new))
    if 2 * new_lines < old_lines:
        return False
    if not path.endswith(".py") or syntax.problem(path, new.encode(errors="replace")):
        return True  # what cannot be parsed is rejected with a better reason
    return syntax.definitions(old.encode()) <= syntax.definitions(new.encode(errors="replace"))
