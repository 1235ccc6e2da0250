"""Tiny models with random weights."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast


@pytest.fixture(scope="session")
def plain_bert(write_bert):
    """A folder with a tiny BERT, as transformers writes it."""
    return write_bert([*"abcdef", "query", ":", "document"])


@pytest.fixture(scope="session")
def classifier(plain_bert, tmp_path_factory):
    """Makes a folder with a BERT whose random head has `labels` outputs."""

    def make(labels=1):
        folder = tmp_path_factory.mktemp("classifier")
        torch.manual_seed(1)
        config = BertConfig.from_pretrained(plain_bert, num_labels=labels)
        model = BertForSequenceClassification(config).eval()
        for weights in (model.bert.pooler.dense.weight, model.classifier.weight):
            weights.data *= 20  # the initial weights would score all pairs alike
        model.save_pretrained(folder)
        BertTokenizerFast.from_pretrained(plain_bert).save_pretrained(folder)
        return folder

    return make
