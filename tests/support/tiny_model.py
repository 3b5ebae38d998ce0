"""A sentence-transformers model made for a test: a BERT of two layers with random weights and a small vocabulary."""

import json
import warnings
from pathlib import Path

WORDS = [
    "the", "a", "we", "to", "on", "of", "and", "in", "is", "for", "with", "no", "not", "do", "how", "which", "what",
    "when", "who", "use", "ship", "release", "deploy", "version", "day", "tuesday", "morning", "friday", "pnpm", "yarn",
    "install", "test", "build", "server", "query", "database", "worker", "file", "own", "note", "rule", "always",
    "never",
]  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:?!-'"
MODULES = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")


def make_model(folder: Path, *, dimension: int = 32, seed: int = 1, max_tokens: int = 64) -> Path:
    """The files of BAAI/bge-*-en-v1.5: transformer, CLS pooling, normalize; safetensors, no prompts of its own."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir(parents=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS, *(f"##{c}" for c in LETTERS)]
    vocabulary = list(dict.fromkeys(vocabulary))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=dimension,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * dimension,
        max_position_embeddings=max_tokens,
    )
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BertModel(config).save_pretrained(folder)
        BertTokenizer(str(folder / "vocab.txt"), model_max_length=max_tokens).save_pretrained(folder)
    described = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
        for number, (name, path) in enumerate(MODULES)
    ]
    (folder / "modules.json").write_text(json.dumps(described), "utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_tokens, "do_lower_case": True}))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": dimension, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), "utf-8")
    return folder
