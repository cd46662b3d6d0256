"""Weights that are damaged or do not fit are refused in one line."""

import hashlib
import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

from suffice import BadInput
from suffice.sensing.classifier import DigitNet
from suffice.sensing.prior import UNet
from suffice.sensing.weights import ASSETS, digest, load_classifier, load_prior, read_weights


def sealed(path):
    """Write the checksum that a file has, so that only what is in it is wrong."""
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".sha256").write_text(f"{checksum}  {path.name}\n")
    return path


@pytest.fixture
def copy(tmp_path):
    for end in (".safetensors", ".sha256"):
        shutil.copy(ASSETS / f"prior{end}", tmp_path / f"prior{end}")
    return tmp_path / "prior.safetensors"


def refusal(load, path):
    with pytest.raises(BadInput) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message or path.with_suffix(".sha256").name in message
    return message


def test_shipped_weights_are_whole_and_small():
    total = 0
    for name, load in (("prior", load_prior), ("classifier", load_classifier)):
        path = ASSETS / f"{name}.safetensors"
        assert digest(path) == path.with_suffix(".sha256").read_text().split()[0]
        total += path.stat().st_size
        module = load(path)
        _, card = read_weights(path)
        net = module.net if name == "prior" else module
        assert card["parameters"] == sum(p.numel() for p in net.parameters())
        assert {"seed", "seconds", "device", "batch"} <= card.keys()
    assert total < 10e6


def test_a_changed_byte_is_a_wrong_checksum(copy):
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    assert "its SHA-256 is" in refusal(load_prior, copy)


def test_a_file_cut_off_is_refused_even_under_its_own_checksum(copy):
    copy.write_bytes(copy.read_bytes()[:100_000])
    assert "its SHA-256 is" in refusal(load_prior, copy)
    cut = copy.with_name("cut.safetensors")
    shutil.copy(copy, cut)
    assert "not a whole safetensors file" in refusal(load_prior, sealed(cut))


@pytest.mark.parametrize("end", [".safetensors", ".sha256"])
def test_a_missing_file_is_named(copy, end):
    copy.with_suffix(end).unlink()
    message = refusal(load_prior, copy)
    assert f"prior{end}: cannot be read" in message


def test_an_empty_checksum_file_is_refused(copy):
    copy.with_suffix(".sha256").write_text("")
    assert "holds no checksum" in refusal(load_prior, copy)


def test_sizes_that_do_not_fit_the_network_are_refused(tmp_path):
    path = tmp_path / "classifier.safetensors"
    state = DigitNet().state_dict()
    state["logits.weight"] = torch.zeros(7, 128)
    save_file(state, path, metadata={"card": "{}"})
    message = refusal(load_classifier, sealed(path))
    assert "do not fit the network" in message
    assert "logits.weight" in message


def test_weights_of_another_network_are_refused(tmp_path):
    path = tmp_path / "prior.safetensors"
    state = {f"net.{key}": value for key, value in UNet(16, 1, 1).state_dict().items()}
    state["mean"] = torch.zeros(784)
    card = {"network": {"channels": 32, "outer": 2, "inner": 3}, "sigma_data": 0.5}
    save_file(state, path, metadata={"card": json.dumps(card)})
    assert "do not fit the network" in refusal(load_prior, sealed(path))


@pytest.mark.parametrize("card", ["{}", "no card", '{"network": {"width": 3}, "sigma_data": 1}'])
def test_a_file_without_its_card_is_refused(tmp_path, card):
    path = tmp_path / "prior.safetensors"
    save_file({"mean": torch.zeros(784)}, path, metadata={"card": card})
    assert "card" in refusal(load_prior, sealed(path))
