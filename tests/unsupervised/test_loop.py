"""The loop: its learning rate, its length, and that a resumed run is the run."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from semsearch.errors import ArgumentError, TrainingError, TrainingStoppedError
from semsearch.unsupervised.checkpoints import Checkpoints, Position
from semsearch.unsupervised.loop import Length, Optimization, fit


def optimization(steps=20, rate=0.1):
    return Optimization(rate, Length(steps), seed=3)


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))


def train(model, folder, steps=20, on_step=lambda *_: None, resume=False):
    def loss_of(batch, generator):
        inputs = torch.tensor(generator.normal(size=(16, 4)), dtype=torch.float32)
        return ((model(inputs) - batch * inputs.sum(1, keepdim=True)) ** 2).mean()

    checkpoints = Checkpoints(folder)
    batches = lambda epoch: [1.0, 0.9, 1.1][epoch % 2 :]  # noqa: E731
    return fit(
        model, batches, loss_of, optimization(steps), checkpoints, resume=resume, on_step=on_step
    )


def stop_after(step):
    def on_step(position, fraction, loss):
        if position.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    return on_step


def test_the_rate_rises_and_falls_linearly():
    rates = [optimization().rate(part / 20) for part in range(21)]
    assert rates[1:4] == pytest.approx([0.05, 0.1, 0.1 * 17 / 18])
    assert rates[11] == pytest.approx(0.05)
    assert rates[20] == 0
    assert 0 < rates[0] < rates[1]


def test_it_learns(tmp_path):
    losses = []
    train(make_model(), tmp_path, 200, lambda position, fraction, loss: losses.append(loss))
    assert len(losses) == 200
    assert sum(losses[-20:]) < 0.5 * sum(losses[:20])


@pytest.mark.parametrize("step", [1, 3, 5, 12])
def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path, step):
    whole = make_model()
    train(whole, tmp_path / "whole")
    with pytest.raises(TrainingStoppedError):
        train(make_model(), tmp_path / "parts", on_step=stop_after(step))
    model = make_model()
    with torch.no_grad():
        model[0].weight.zero_()  # what it began with does not matter
    position = train(model, tmp_path / "parts", resume=True)
    assert position.step == 20
    for one, other in zip(whole.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_only_the_newest_checkpoint_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("semsearch.unsupervised.loop.CHECKPOINT_EVERY_SECONDS", 0.0)
    train(make_model(), tmp_path / "run")
    (kept,) = (tmp_path / "run").iterdir()
    assert kept.name == "step-000000020"


def test_a_finished_training_is_not_gone_on_with(tmp_path):
    whole = make_model()
    train(whole, tmp_path)
    again = make_model()
    position = train(again, tmp_path, resume=True, on_step=lambda *_: pytest.fail("a step"))
    assert position.step == 20
    assert torch.equal(whole[0].weight, again[0].weight)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_told(tmp_path, name):
    with pytest.raises(TrainingStoppedError):
        train(make_model(), tmp_path, on_step=stop_after(2))
    (file,) = tmp_path.glob(f"*/{name}")
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(TrainingError, match="is damaged; remove"):
        train(make_model(), tmp_path, resume=True)


def test_a_loss_of_nan_is_told(tmp_path):
    model = make_model()

    def break_it(position, fraction, loss):
        if position.step == 3:
            model[2].bias.data.fill_(float("nan"))

    with pytest.raises(TrainingError, match="the loss is nan at step 4.*lower --learning-rate"):
        train(model, tmp_path, on_step=break_it)


def test_minutes():
    length = Length(minutes=0.5)
    assert length.fraction(Position(seconds=15)) == 0.5
    for wrong in ({}, {"steps": 1, "minutes": 1.0}, {"steps": -1}, {"minutes": float("nan")}):
        with pytest.raises(ArgumentError):
            Length(**wrong)
    with pytest.raises(ArgumentError, match="the learning rate must be more than 0"):
        Optimization(0.0, length)
