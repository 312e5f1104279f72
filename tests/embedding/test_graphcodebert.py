"""The adapter to transformers, with a small model of the paper's architecture and random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labcoat.embedding.cache import Cache
from labcoat.embedding.graphcodebert import GraphCodeBERT
from labcoat.embedding.windows import WINDOW, Windowed
from labcoat.errors import CannotRunHere

TEXT = "".join(f"def f{n}(x):\n    return x * {n} + {n * n}\n" for n in range(60))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RoBERTa of two layers with byte-pair tokens learnt from TEXT, as files in a folder."""
    torch = pytest.importorskip("torch", reason="needs the extra `embed`")
    pytest.importorskip("transformers", reason="needs the extra `embed`")
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    tokens = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokens.train_from_iterator([TEXT], vocab_size=400, special_tokens=special)
    RobertaTokenizerFast(tokenizer_object=tokens._tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    RobertaModel(
        RobertaConfig(
            vocab_size=400, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        )
    ).save_pretrained(folder)  # fmt: skip
    return folder


def by_hand(model: Path, text: str) -> np.ndarray:
    """The released recipe, window by window: the first token's vectors, summed."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model).eval()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    total = np.zeros(32)
    for start in range(0, len(ids), WINDOW):
        window = torch.tensor([[0, *ids[start : start + WINDOW], 2]])
        with torch.no_grad():
            total += network(window).last_hidden_state[0, 0].numpy()
    return total


def test_sums_are_those_of_the_released_recipe(model: Path, tmp_path: Path) -> None:
    embedder = Windowed("graphcodebert", GraphCodeBERT(str(model)), "sum", Cache(tmp_path / "c"))
    texts = [TEXT, TEXT[:1000], ""]
    found = np.array(embedder.embed(texts))
    assert np.abs(found[0] - by_hand(model, texts[0])).max() < 1e-4
    assert np.abs(found[1] - by_hand(model, texts[1])).max() < 1e-4
    assert not found[2].any()


def test_a_mean_is_over_the_texts_own_tokens(model: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    embedder = Windowed("graphcodebert:mean", GraphCodeBERT(str(model)), "mean", Cache(tmp_path / "c"))
    short, padded = np.array(embedder.embed([TEXT[:200], TEXT[:900]]))
    ids = AutoTokenizer.from_pretrained(model)(TEXT[:200], add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        states = AutoModel.from_pretrained(model).eval()(torch.tensor([[0, *ids, 2]])).last_hidden_state[0]
    assert np.abs(short - states[1:-1].mean(dim=0).numpy()).max() < 1e-5
    assert np.linalg.norm(padded) < 2 * np.linalg.norm(short)


def test_other_weights_have_another_name(model: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel

    torch.manual_seed(1)
    other = AutoModel.from_pretrained(model)
    with torch.no_grad():
        other.embeddings.word_embeddings.weight += 0.01
    (tmp_path / "other").mkdir()
    for file in model.iterdir():
        (tmp_path / "other" / file.name).write_bytes(file.read_bytes())
    other.save_pretrained(tmp_path / "other")
    assert GraphCodeBERT(str(model)).name == GraphCodeBERT(str(model)).name
    assert GraphCodeBERT(str(model)).name != GraphCodeBERT(str(tmp_path / "other")).name


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCOAT_GRAPHCODEBERT", str(tmp_path / "nothing"))
    with pytest.raises(CannotRunHere, match=r"labcoat\[embed\]|set LABCOAT_GRAPHCODEBERT to its folder"):
        GraphCodeBERT().tokens("x")
