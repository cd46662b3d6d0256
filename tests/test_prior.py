"""The shipped denoiser denoises; training can be stopped and goes on where it was."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from suffice.sensing.data import evaluation_set
from suffice.sensing.prior import Prior, UNet
from suffice.sensing.weights import ASSETS, load_prior, read_weights

torch.set_num_threads(1)
SCRIPT = Path(__file__).parents[1] / "scripts" / "train_prior.py"


@pytest.fixture
def training(monkeypatch):
    """The training script, on the packaged images: the training split needs a download."""
    spec = importlib.util.spec_from_file_location("train_prior", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    images, labels = evaluation_set()
    pixels = np.round((images + 1) * 127.5).astype(np.uint8).reshape(-1, 28, 28)
    monkeypatch.setattr(script, "load_mnist", lambda *_: (np.tile(pixels, (3, 1, 1)), labels))

    def run(out, **options):
        words = ["train_prior.py", "--out", str(out), "--device", "cpu", "--batch", "16"]
        words += ["--channels", "8", "--outer", "1", "--inner", "1"]
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        monkeypatch.setattr("sys.argv", words)
        script.main()

    run.script = script
    return run


def contents(path):
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def stop_at_the_first_checkpoint(training, monkeypatch, out):
    """A run that is interrupted just after its first checkpoint was written."""
    write = training.script.checkpoint

    def write_and_stop(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training.script, "checkpoint", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            training(out, minutes=0.05, save_every=0.3)
    assert not out.exists()
    saved, metadata = contents(out.with_suffix(".checkpoint"))
    return saved, json.loads(metadata["progress"])


def test_a_tiny_run_makes_a_prior_that_loads(training, tmp_path, capsys):
    out = tmp_path / "prior.safetensors"
    training(out, minutes=0.05)
    card = json.loads(capsys.readouterr().out)
    tensors, metadata = contents(out)
    assert json.loads(metadata["card"]) == card
    assert card["network"] == {"channels": 8, "outer": 1, "inner": 1}
    assert card["steps"] > 10
    prior = Prior(UNet(**card["network"]), tensors["mean"], card["sigma_data"])
    prior.load_state_dict(tensors)
    assert not out.with_suffix(".checkpoint").exists()
    # Even three seconds teach it more than to answer with the noisy image, or the mean.
    assert card["held_out_rmse"]["0.5"] < 0.45
    assert card["held_out_rmse"]["20"] < 1.05 * card["sigma_data"]


def test_a_stopped_run_goes_on_with_the_same_weights_and_moments(training, monkeypatch, tmp_path):
    out = tmp_path / "prior.safetensors"
    saved, progress = stop_at_the_first_checkpoint(training, monkeypatch, out)
    # With no time left, what was saved is the result.
    training(out, minutes=progress["seconds"] / 60)
    tensors, metadata = contents(out)
    assert json.loads(metadata["card"])["steps"] == progress["step"] > 0
    averages = {name: value for name, value in saved.items() if name.startswith("average|")}
    assert averages.keys() == {f"average|{name}" for name in tensors}
    for name, value in averages.items():
        assert torch.equal(tensors[name.removeprefix("average|")], value)


def test_a_stopped_run_spends_only_the_time_that_was_left(training, monkeypatch, tmp_path):
    out = tmp_path / "prior.safetensors"
    _, progress = stop_at_the_first_checkpoint(training, monkeypatch, out)
    kept = []
    write = training.script.checkpoint

    def write_and_keep(path, state, now):
        write(path, state, now)
        kept.append((contents(path)[0], now))

    monkeypatch.setattr(training.script, "checkpoint", write_and_keep)
    training(out, minutes=(progress["seconds"] + 1.0) / 60, save_every=0.3)
    card = json.loads(contents(out)[1]["card"])
    assert card["steps"] > kept[0][1]["step"] > progress["step"]
    assert card["seconds"] == pytest.approx(progress["seconds"] + 1.0, abs=1.0)
    # Adam counts its own steps: they went on too, so its moments were taken up.
    moments, now = kept[0]
    counts = {float(value) for name, value in moments.items() if name.endswith(".step")}
    assert counts == {float(now["step"])}


def test_the_shipped_prior_is_as_good_as_its_card_says():
    """On images of the test split; the card's are training images that were held out."""
    _, card = read_weights(ASSETS / "prior.safetensors")
    x0 = torch.from_numpy(evaluation_set()[0])
    prior, z = load_prior(), torch.randn(x0.shape, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for level in (0.2, 1.0, 5.0):
            noisy = x0 + level * z
            error = prior(noisy, torch.full((len(x0),), level)) - x0
            found = error.square().mean().sqrt().item()
            assert found == pytest.approx(card["held_out_rmse"][f"{level:g}"], rel=0.04)


def test_a_denoiser_that_has_learnt_nothing_is_the_linear_one():
    """EDM's skip alone: the mean of x0 if pixels were independent with one variance."""
    mean = torch.linspace(-1, 0, 784)
    prior = Prior(UNet(8, 1, 1), mean, 0.5)
    x, sigma = torch.randn(3, 784), torch.tensor([0.1, 1.0, 10.0])
    share = (0.25 / (0.25 + sigma**2))[:, None]
    torch.testing.assert_close(prior(x, sigma), mean + share * (x - mean))
