"""Text: a file's bytes as lines that end in a newline, and back to the file's own style."""

from __future__ import annotations

from dataclasses import dataclass

_BOM = "\ufeff"


@dataclass(frozen=True)
class Style:
    """What an edit must not change by the way: line endings, a missing final newline, a byte-order mark.

    A file of mixed line endings counts as LF: its carriage returns stay where they are, as white space before the end
    of the line, so that the lines that an edit does not touch keep theirs.
    """

    crlf: bool = False
    final_newline: bool = True
    bom: bool = False

    @classmethod
    def split(cls, content: bytes) -> tuple[str, Style]:
        """The text of ``content`` with LF endings, every line ended, and the style that gives ``content`` back.

        Raises:
            UnicodeDecodeError: if it is not UTF-8.
        """
        text = content.decode()
        lines = text.count("\n")
        style = cls(0 < lines == text.count("\r\n"), text.endswith("\n") or not text, text.startswith(_BOM))
        text = text.removeprefix(_BOM)
        if style.crlf:
            text = text.replace("\r\n", "\n")
        return (text if style.final_newline else f"{text}\n"), style

    def join(self, text: str) -> bytes:
        """The inverse of :meth:`split`.

        Raises:
            UnicodeEncodeError: if ``text`` holds half of a surrogate pair.
        """
        if not self.final_newline:
            text = text.removesuffix("\n")
        if self.crlf:
            text = text.replace("\n", "\r\n")
        return (_BOM * self.bom + text).encode()
