"""The commands of a trial: what runs, on what, within which limits."""

from __future__ import annotations

import string
from typing import Literal

from pydantic import Field, model_validator

from labcoat.manifest.table import MOST_MB, Table

DATA_FILES = (".npy", ".npz", ".safetensors", ".json")
"""What an artefact that is read as data may hold."""
PLACEHOLDERS = {
    "fit": ("train", "state", "artefact", "assets", "seed"),
    "predict": ("inputs", "artefact", "out", "assets", "seed"),
    "run": ("seed",),
    "test": ("seed",),
}


class Resources(Table):
    """Limits of one phase."""

    cpus: int = Field(1, ge=1)
    """Processors that it runs on, and threads that numerical libraries start."""
    memory_mb: int = Field(2048, ge=64, le=MOST_MB)
    """Memory of the whole process tree, in MiB."""
    processes: int = Field(128, ge=1, le=1 << 22)
    """Processes and threads of the whole tree."""
    disk_mb: int = Field(1024, ge=1, le=MOST_MB)
    """Largest file that may be written, in MiB."""
    gpus: int = Field(0, ge=0)
    """GPUs that it sees, its own while it runs."""
    gpu_memory_mb: int | None = Field(None, ge=1)
    """Memory that each of them must have, in MiB, where nvidia-smi says how much it has; declared, not held."""


class Phase(Table):
    """One command of a trial: ``fit`` sees train and writes an artefact, ``predict`` sees the inputs of one problem.

    Each of its processes is a fresh one. In a self-reported task ``run`` is the project's command and ``test`` what
    measures its final result.
    """

    name: Literal["fit", "predict", "run", "test"]
    argv: list[str] = Field(min_length=1)
    """Command without a shell; ``python`` is the task's own. Placeholders are folders, and {seed}.

    ``fit``: {train} {artefact} {state} {assets}; ``predict``: {inputs} {artefact} {out} {assets}.
    """
    timeout: float = Field(gt=0)
    """Seconds of wall clock of one process."""
    code: Literal["candidate", "harness"] = "candidate"
    """``harness``: the task's own program in ``harness/`` runs, sees no file of the candidate, and reads the artefact
    as data."""
    feed: Literal["whole", "units"] = "whole"
    """``units``: fit meets the numbered folders of train one by one, each in a fresh process; what it left for the
    unit before is in {state}, and nothing else passes from one to the next."""
    passes: int = Field(1, ge=1)
    """How often fit goes through the units."""
    after: Literal["last", "each"] = "last"
    """``each``: problem n is predicted from the artefact that unit n left, not from the last one."""
    artefact_mb: int | None = Field(None, ge=1)
    """Largest artefact of one process, in MiB; ``resources.disk_mb`` where it is left out."""
    resources: Resources = Resources()

    @model_validator(mode="after")
    def _whole(self) -> Phase:
        if not self.argv[0] or any("\0" in part for part in self.argv):
            raise ValueError("argv: an empty program or a null character; no command can have these")
        known = PLACEHOLDERS[self.name]
        for part in self.argv:
            for _, field, form, conversion in string.Formatter().parse(part):
                used = f"{field}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}"
                if field is not None and used not in known:
                    raise ValueError(f"argv uses {{{used}}}; {self.name} knows {', '.join(known)}")
        words = [self.code, self.feed, self.passes, self.after, self.artefact_mb]
        if self.name in ("run", "test") and words != ["candidate", "whole", 1, "last", None]:
            raise ValueError("code, feed, passes, after, artefact_mb: words of tasks that are scored")
        if self.name == "predict" and (self.feed == "units" or self.passes > 1):
            raise ValueError("feed, passes: predict meets each problem in a fresh process; make each unit a problem")
        if self.name == "predict" and self.artefact_mb is not None:
            raise ValueError("artefact_mb: it is fit that leaves an artefact")
        if (self.artefact_mb or 0) > self.resources.disk_mb:
            raise ValueError("artefact_mb is more than resources.disk_mb, which ends the process before")
        if self.name == "fit" and self.code == "harness":
            raise ValueError('code = "harness" is for predict: such a fit would train nothing of the candidate')
        if self.name == "fit" and self.after == "each":
            raise ValueError('after = "each" says when predict runs; write it there')
        if self.feed == "whole" and (self.passes > 1 or self.uses("state")):
            raise ValueError('passes and {state} need feed = "units"')
        return self

    def uses(self, placeholder: str) -> bool:
        """Whether the command has this placeholder."""
        return any(f"{{{placeholder}}}" in part for part in self.argv)
