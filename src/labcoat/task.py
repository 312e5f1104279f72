"""Task: a manifest with the folder it came from, and all that is generated from it."""

from __future__ import annotations

import tomllib
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from labcoat.errors import InputError, of_field
from labcoat.landscape import FORMULA
from labcoat.manifest import Manifest
from labcoat.manifest.phase import DATA_FILES, Phase
from labcoat.manifest.reported import told
from labcoat.tree import Code, matches


class Task:
    """A manifest with the folder it came from."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Wrap a checked manifest; use :meth:`load` to read one."""
        self.folder = folder
        self.manifest = manifest
        self.id = manifest.id
        self.metric = manifest.metric

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read ``folder/task.toml`` and check it and the files that it names.

        Raises:
            InputError: naming the file, the field and what to do.
        """
        path = folder / "task.toml"
        try:
            raw: dict[str, Any] = tomllib.loads(path.read_text())
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; a task is a folder with a task.toml in it") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not valid TOML: {error}") from None
        try:
            manifest = Manifest.model_validate(raw)
        except ValidationError as error:
            lines = [f"  {'.'.join(str(p) for p in e['loc']) or 'task.toml'}: {of_field(e)}" for e in error.errors()]
            raise InputError(f"{path}: {len(lines)} field(s) to correct\n" + "\n".join(lines)) from None
        task = cls(folder, manifest)
        for needed in task.needed_files():
            if not (folder / needed).exists():
                raise InputError(f"{folder / needed}: missing; {path} needs it")
        if bool(task.harness) != task.has_harness:
            word = 'no phase has code = "harness"' if task.harness else "it holds no program"
            raise InputError(f"{folder / 'harness'}: {word}; see {path}")
        try:
            editable = task.editable_files(task.baseline)
        except ValueError as error:
            raise InputError(f"{folder / 'workspace'}: {error}; rename that file") from None
        if not editable:
            raise InputError(f"{path}: files.editable: {manifest.files.editable} matches nothing in {folder}/workspace")
        return task

    @cached_property
    def statement(self) -> str:
        """What the agent is told of the task: the prompt's text, then the facts that the manifest itself holds."""
        manifest = self.manifest
        facts = [f"Files that may be changed: {', '.join(manifest.files.editable)}"]
        for bound in manifest.constraint:
            slack = f", within {bound.tolerance:g}" if bound.tolerance else ""
            against = "the baseline's" if bound.reference == "baseline" else f"{bound.reference:g}"
            rule = "a run that breaks it is not valid" if bound.kind == "enforced" else "declared, not measured"
            facts.append(f"Constraint: {bound.metric} {bound.side.replace('_', ' ')} {against}{slack} ({rule})")
        for phase in manifest.phase:
            limits = phase.resources
            gpus = f", {limits.gpus} GPU(s)" if limits.gpus else ""
            gpus += f" of {limits.gpu_memory_mb} MiB" if limits.gpus and limits.gpu_memory_mb else ""
            facts.append(
                f"Limits of {phase.name}: {phase.timeout:g} s, {limits.cpus} thread(s), "
                f"{limits.memory_mb} MiB memory{gpus}"
            )
        facts += self._flow
        if manifest.environment.requires:
            facts.append(f"Installed packages, and no others: {', '.join(manifest.environment.requires)}")
        if manifest.integrity == "self-reported":
            facts += told(self.metric.name, manifest.phase[0].argv, manifest.report, manifest.data.mounts)
        return "\n".join([manifest.prompt.text.strip(), "", *facts])

    @property
    def _flow(self) -> list[str]:
        """What is not plain about the way from train to the final result, in sentences."""
        manifest, found = self.manifest, []
        fit, predict = manifest.phase_named("fit"), manifest.phase_named("predict")
        if fit and fit.feed == "units":
            times = "once" if fit.passes == 1 else f"{fit.passes} times"
            found.append(
                f"The training data come in units: fit goes through them {times}, each in a fresh process. Only the "
                f"artefact, of at most {fit.artefact_mb or fit.resources.disk_mb} MiB, passes from one to the next"
            )
        if predict and predict.after == "each":
            found.append("predict runs after each unit, from the artefact that this unit left")
        if predict and predict.code == "harness":
            found.append(f"predict is a fixed program: it reads the artefact as data ({', '.join(DATA_FILES)})")
        if manifest.test.refit:
            found.append("For the final result fit runs again, on other training data")
        if manifest.data.asset:
            names = ", ".join(PurePosixPath(asset.member).name for asset in manifest.data.asset)
            found.append(f"Files given to every phase: {names}")
        return found

    def drift(self, baseline: float) -> str:
        """A warning if the baseline's validation metric differs from the card by more than noise, else nothing."""
        card = self.manifest.references.baseline_val
        if card is None:
            return ""
        noise = max(self.manifest.references.noise_floor, 2 * card.std, 1e-4 * abs(card.mean))
        if abs(baseline - card.mean) <= noise:
            return ""
        return (
            f"baseline-differs-from-card: {self.metric.name} of the untouched code is {baseline:.6g} here, the card of "
            f"{self.id} says {card.mean:.6g} (noise {noise:.3g}); compare results with those of this machine only"
        )

    def needed_files(self) -> list[str]:
        """Files that the task folder must hold beside ``task.toml``."""
        if self.manifest.simulation:
            module = self.manifest.simulation.module
            return ["workspace", *([module] if module else [])]
        if self.manifest.integrity == "self-reported":
            return ["workspace"]
        return ["workspace", "data.py", "scorer.py", *(["harness"] if self.has_harness else [])]

    @property
    def has_harness(self) -> bool:
        """Whether a phase runs the task's own program."""
        return any(phase.code == "harness" for phase in self.manifest.phase)

    @cached_property
    def baseline(self) -> Code:
        """The code that the task starts from: all of ``workspace/``."""
        return Code.read(self.folder / "workspace")

    @cached_property
    def harness(self) -> Code:
        """The task's own program that phases with ``code = "harness"`` run; empty where there is none."""
        folder = self.folder / "harness"
        return Code.read(folder) if folder.is_dir() else Code.of({})

    def is_editable(self, path: str) -> bool:
        """Whether a candidate may add, change or delete the file at ``path``."""
        return matches(path, self.manifest.files.editable)

    def editable_files(self, code: Code) -> list[str]:
        """The editable files of ``code``, sorted."""
        return [path for path in code if self.is_editable(path)]

    @cached_property
    def hash(self) -> str:
        """Hash of everything that defines the task: manifest, ``workspace/``, ``harness/``, Python files beside them.

        Its card, its solutions and whatever else lies in the folder (runs, notes) are not part of it.
        """
        simulation = self.manifest.simulation
        shared = [FORMULA] if simulation and simulation.landscape else []
        files = [self.folder / "task.toml", *shared, *self.folder.glob("*.py")]
        beside = {path.name: path.read_bytes() for path in files}
        folders = {"workspace": self.baseline, "harness": self.harness}
        below = {f"{name}/{path}": file for name, code in folders.items() for path, file in code.items()}
        return Code.of({**beside, **below}).sha

    def phase(self, name: str) -> Phase | None:
        """The phase of that name, if the task has one."""
        return self.manifest.phase_named(name)
