"""GraphCodeBERT through transformers (extra ``embed``): the only file that imports torch and transformers.

Source: Guo et al. 2021, as used by FML-bench: no data flow is given, so it reads code as a plain RoBERTa encoder does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labcoat.errors import CannotRunHere

if TYPE_CHECKING:
    from labcoat.embedding.cache import Rows
    from labcoat.embedding.windows import Pool

MODEL = "microsoft/graphcodebert-base"
WHERE = "LABCOAT_GRAPHCODEBERT"
"""Variable with the folder of the model's files, for machines without a hub."""


class GraphCodeBERT:
    """The encoder; weights are read on first use."""

    def __init__(self, model: str | None = None, device: str | None = None) -> None:
        """``model`` is a name on the hub or a folder; by default ``$LABCOAT_GRAPHCODEBERT``, else the paper's."""
        self._model = model or os.environ.get(WHERE) or MODEL
        self._device = device

    @property
    def name(self) -> str:
        """The model with a fingerprint of its weights."""
        return f"{MODEL} {self._fingerprint}"

    @property
    def dimensions(self) -> int:
        """768 for the paper's model."""
        return int(self._network.config.hidden_size)

    def tokens(self, text: str) -> list[int]:
        """Byte-pair tokens of the whole text, as many as there are."""
        found: list[int] = self._tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        return found

    def encode(self, windows: Sequence[Sequence[int]], pool: Pool) -> Rows:
        """Last-layer vectors: of the first token, or the mean over the window's own tokens."""
        torch = self._torch
        first, last, padding = (
            self._tokenizer.cls_token_id, self._tokenizer.sep_token_id, self._tokenizer.pad_token_id,
        )  # fmt: skip
        longest = max(map(len, windows)) + 2
        ids = torch.full((len(windows), longest), padding)
        seen, own = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window) + 2] = torch.tensor([first, *window, last])
            seen[row, : len(window) + 2] = 1
            own[row, 1 : len(window) + 1] = 1
        device = self._network.device
        with torch.no_grad():
            states = self._network(input_ids=ids.to(device), attention_mask=seen.to(device)).last_hidden_state
        if pool == "sum":
            vectors = states[:, 0]
        else:
            weights = own.to(device)[:, :, None]
            vectors = (states * weights).sum(dim=1) / weights.sum(dim=1)
        return np.asarray(vectors.float().cpu().numpy(), np.float32)

    @cached_property
    def _torch(self) -> Any:
        try:
            import torch
            import transformers  # noqa: F401
        except ImportError as error:
            raise CannotRunHere(
                f"embedder graphcodebert: {error.name} is not installed: pip install 'labcoat[embed]'"
            ) from None
        return torch

    @cached_property
    def _network(self) -> Any:
        torch = self._torch
        from transformers import AutoModel

        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        return self._read(lambda: AutoModel.from_pretrained(self._model, add_pooling_layer=False)).eval().to(device)

    @cached_property
    def _tokenizer(self) -> Any:
        self._torch  # noqa: B018 -- says what is not installed
        from transformers import AutoTokenizer

        return self._read(lambda: AutoTokenizer.from_pretrained(self._model))

    def _read(self, reading: Any) -> Any:
        try:
            return reading()
        except (OSError, ValueError) as error:
            raise CannotRunHere(
                f"embedder graphcodebert: cannot read {self._model}: {str(error).splitlines()[0]}\n"
                f"Fetch it where there is a network (`hf download {MODEL}`), and set {WHERE} to its folder"
            ) from None

    @cached_property
    def _fingerprint(self) -> str:
        from labcoat.tree import sha256

        weights = self._network.state_dict()
        return sha256("\n".join(f"{name} {float(w.double().sum())!r}" for name, w in weights.items()).encode())[:16]
