"""Chat models: the protocol and the ones built in."""

from __future__ import annotations

from labcoat.errors import InputError
from labcoat.models.chat import ROOM, AtEndpoint, Call, Model, ModelAway, ModelRefuses, Part, Prompt, Reply, Usage

__all__ = [
    "ROOM", "AtEndpoint", "Call", "Model", "ModelAway", "ModelRefuses", "Models", "Part", "Prompt", "Reply", "Usage",
    "load",
]  # fmt: skip

KNOWN = {
    "offline:mutate": "changes constants in the code; needs no key and no network",
    "openai:NAME": "a model behind any server of the OpenAI protocol; docs/models.md",
    "openai:NAME@ENDPOINT": "the same, at an endpoint that labcoat.toml names",
    "inspect:PROVIDER/NAME": "a model of inspect_ai's providers; needs the extra `inspect`",
    "scripted:FILE": "answers with the lines of a file: a JSON string or an object with `text` a line; for tests",
    "replay:RUN": "answers what the model of the run in that folder answered",
}


def load(spec: str) -> Model:
    """The model that ``spec`` names.

    Raises:
        InputError: unknown kind, or what stands after the colon does not exist.
    """
    kind, _, rest = spec.partition(":")
    if spec == "offline:mutate":
        from labcoat.models.offline import OfflineMutator

        return OfflineMutator()
    if kind == "scripted" and rest:
        from labcoat.models.scripted import ScriptedModel

        return ScriptedModel.read(rest)
    if kind == "replay" and rest:
        from labcoat.models.replay import ReplayModel

        return ReplayModel(rest)
    if kind == "openai" and rest:
        from labcoat.models.endpoint import EndpointModel

        return EndpointModel.named(rest)
    if kind == "inspect" and "/" in rest:
        from labcoat.models.inspected import InspectModel

        return InspectModel(rest)
    known = "".join(f"\n  {name:22} {what}" for name, what in KNOWN.items())
    raise InputError(f"unknown model {spec!r}; known:{known}")


class Models:
    """A model for each purpose: ``offline:mutate``, or ``idea=A,edit=B`` with ``*=C`` for all the others."""

    def __init__(self, by_purpose: dict[str, Model]) -> None:
        """Map purposes to models; ``*`` stands for every purpose that is not named."""
        self.by_purpose = by_purpose

    @classmethod
    def parse(cls, spec: str) -> Models:
        """Read the form of the command line.

        Raises:
            InputError: naming the part that is wrong.
        """
        head = spec.partition(":")[0]
        if "=" not in head:
            return cls({"*": load(spec)})
        named: dict[str, Model] = {}
        for part in spec.split(","):
            purpose, equals, name = part.partition("=")
            if not (purpose and equals and name):
                raise InputError(f"--model {spec!r}: {part!r} is not PURPOSE=MODEL")
            named[purpose.strip()] = load(name.strip())
        return cls(named)

    def check(self, purposes: list[str]) -> None:
        """Check that every purpose has a model, and that nothing else is named.

        Raises:
            InputError: naming the purpose.
        """
        for purpose in purposes:
            if purpose not in self.by_purpose and "*" not in self.by_purpose:
                raise InputError(f"--model names no model for {purpose!r}; add {purpose}=MODEL or *=MODEL")
        for purpose in self.by_purpose:
            if purpose not in (*purposes, "*"):
                raise InputError(f"--model: nothing is asked for {purpose!r}; known: {', '.join(purposes)}")

    def of(self, purpose: str) -> Model:
        """The model for a purpose.

        Raises:
            InputError: none is named for it.
        """
        model = self.by_purpose.get(purpose) or self.by_purpose.get("*")
        if model is None:
            named = ", ".join(self.by_purpose)
            raise InputError(f"--model names models for {named}, none for {purpose!r}; add {purpose}=MODEL or *=MODEL")
        return model

    @property
    def spec(self) -> dict[str, str]:
        """Names by purpose: part of a run's identity."""
        return {purpose: model.name for purpose, model in sorted(self.by_purpose.items())}

    @property
    def constants_only(self) -> bool:
        """Whether no edit can change anything but literals."""
        return all(model.constants_only for model in self.by_purpose.values())
