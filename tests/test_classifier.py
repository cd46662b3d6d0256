"""The classifier on digits that it never saw, and votes for no class."""

import numpy as np
import pytest
import torch

from suffice import BadInput
from suffice.sensing.classifier import INVALID, vote
from suffice.sensing.data import evaluation_set
from suffice.sensing.sampler import DigitClassifier
from suffice.sensing.weights import ASSETS, load_classifier, read_weights

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def net():
    return load_classifier()


def test_it_is_right_on_99_in_100_evaluation_images(net):
    images, labels = evaluation_set()
    assert (DigitClassifier(net)(images) == labels).mean() >= 0.99
    _, card = read_weights(ASSETS / "classifier.safetensors")
    assert card["test_accuracy"] >= 0.99  # all 10,000 test images, when it was trained


def test_labels_do_not_depend_on_the_batch(net):
    images, _ = evaluation_set()
    classifier = DigitClassifier(net)
    together = classifier(images[:100])
    alone = [classifier(images[at : at + 1])[0] for at in range(100)]
    assert together.tolist() == alone
    assert together.dtype == np.uint8


def test_an_unsure_vote_is_invalid_if_asked(net):
    images, labels = evaluation_set()
    noise = np.random.default_rng(0).uniform(-1, 1, (200, 784)).astype(np.float32)
    sure = DigitClassifier(net, min_confidence=0.8)
    assert (sure(images) != INVALID).mean() > 0.97
    assert (sure(noise) == INVALID).mean() > 0.9
    assert (DigitClassifier(net)(noise) != INVALID).all()
    kept = sure(images) != INVALID
    assert (sure(images) == labels)[kept].mean() >= 0.995


def test_a_broken_image_is_an_invalid_vote(net):
    images = evaluation_set()[0][:5].copy()
    images[2, 300] = np.nan
    assert (DigitClassifier(net)(images) == INVALID).tolist() == [False, False, True, False, False]


def test_no_images_no_labels(net):
    assert DigitClassifier(net)(np.empty((0, 784), dtype=np.float32)).shape == (0,)


@pytest.mark.parametrize("confidence", [-0.1, 1.0, float("nan")])
def test_a_confidence_outside_0_to_1_is_refused(confidence):
    with pytest.raises(BadInput, match="is outside 0 to 1; 0 accepts every vote"):
        vote(torch.zeros(1, 3), confidence)
