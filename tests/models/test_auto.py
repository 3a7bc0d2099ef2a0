from __future__ import annotations

import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import fuda
from fuda import CRF, HMM, HMSVM, Auto, Dag, DataError, MarginalizedPerceptron, Sequence, Tree
from fuda.data.corpus import Corpus
from fuda.models import auto
from fuda.models.choice.candidate_fits import Fits, Output
from fuda.models.choice.combination import Combination, Decoder
from fuda.models.choice.opinions import Opinion
from fuda.models.hm_perceptron import HMPerceptron
from fuda.selection import Split, search
from fuda.selection.search import Candidate
from fuda.selection.validation import Times
from model_cases import training_data

NAMES, PLACES = ["Ana", "Bo", "Eva", "Paz"], ["Lima", "Oslo", "Rome"]


def sentences(count, seed=0):
    random = np.random.RandomState(seed)
    X, y = [], []
    for _ in range(count):
        name, place = NAMES[random.randint(4)], PLACES[random.randint(3)]
        X.append([name, "Cruz", "went", "to", place, "."])
        y.append(["B-PER", "I-PER", "O", "O", "B-LOC", "O"])
    return X, y


FEW = {"crf": CRF(features="word"), "hmm": HMM(), "perceptron": HMPerceptron(features="word", epochs=2)}
X, Y = sentences(12)


@pytest.fixture(autouse=True)
def _folds_once(monkeypatch):
    monkeypatch.setattr(search, "_REPEATS", 0)


def test_it_is_an_estimator_with_the_methods_of_what_it_chose(tmp_path):
    model = Auto(candidates={"crf": CRF(features="word")}, combine=False)
    assert not hasattr(model, "predict_marginals")
    assert clone(model).get_params()["combine"] is False
    model.fit(X, Y)
    assert isinstance(model.best_, CRF)
    assert model.best_.scheme == "IOB2"
    assert model.predict(X).tolist() == model.best_.predict(X).tolist() == Y
    assert model.predict(X[:1], known=[["O"] * 6])[0] == ["O"] * 6
    assert model.predict_marginals(X)[0].shape == (6, 4)
    assert model.top_features(1) == model.best_.top_features(1)
    assert model.score(X, Y) == 1.0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        Auto().nothing  # noqa: B018


def test_what_it_chose_is_taught_new_labels(tmp_path):
    model = Auto(candidates={"crf": CRF()}).fit(X, Y)
    new = [["Zed", "zap"]]
    assert model.partial_fit(new, [["B-Z", "O"]]) is model
    assert list(model.classes_) == ["B-LOC", "B-PER", "B-Z", "I-PER", "O"]
    model.save(tmp_path / "taught.fuda")
    loaded = fuda.load(tmp_path / "taught.fuda")
    assert loaded.predict(new).tolist() == model.predict(new).tolist() == [["B-Z", "O"]]
    assert loaded.partial_fit(new, [["O", "O"]]).predict(new).tolist() == [["O", "O"]]


def test_models_that_decide_together_say_how_to_get_one_that_can_be_taught():
    members = [CRF(features="word").fit(X, Y), HMM().fit(X, Y)]
    model = Auto(candidates={"crf": members[0]}).fit(X, Y)
    model.best_ = Combination(members, Decoder(np.ones(2), np.zeros(4), np.zeros((4, 4)), None))
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=r"have no partial_fit; fit Auto\(combine=False\)"):
        model.partial_fit(X, Y)


def test_the_report_says_what_was_tried():
    model = Auto(candidates=FEW).fit(X, Y)
    rows = {row["name"]: row for row in model.report_.rows}
    assert rows.keys() == FEW.keys()
    assert model.report_.goal == "entity F1"
    assert rows["crf"]["folds"] >= 7
    assert rows["crf"]["cpu"] + rows["crf"]["wall"] > 0
    text = str(model.report_)
    assert "±" in text
    assert "chosen: " in text
    assert "<table>" in model.report_._repr_html_()


def test_some_candidates_join_others_on_proof_only():
    corpus = Corpus([Sequence(["x"] * 5) for _ in range(40)])
    labels = np.random.RandomState(0).randint(0, 2, 200)
    model = Auto(candidates={"crf": CRF(), "other": HMM()})
    data = model._training_data(corpus, ["a", "b"], labels)

    def members(joins, sure):
        """The first is wrong at every eighth node, though not sure; the other elsewhere."""
        search = auto._Search(model, data)
        search.race.tests = [np.arange(40)]
        for k, trial in enumerate(search.race.trials):
            predicted = np.where(np.arange(200) % (8 if k == 0 else 7) == 1, 1 - labels, labels)
            right = np.where(predicted == labels, 0.8 if k == 0 else sure, 0.4 if k == 0 else 0.45)
            p = np.empty((200, 2))
            p[np.arange(200), labels], p[np.arange(200), 1 - labels] = right, 1 - right
            trial.outputs, trial.times = [Output(Opinion(p), predicted)], [(100, Times(0.1, 0.1))]
            trial.candidate = replace(trial.candidate, joins=joins or k == 0)
        search.race._evaluate()
        return len(search.choice().trials)

    assert members(joins=True, sure=0.51) == 2  # it brings nothing, and is of another family
    assert members(joins=False, sure=0.51) == 1
    assert members(joins=False, sure=0.9) == 2


def test_a_team_is_chosen_unless_another_is_better():
    corpus = Corpus([Sequence(["x"] * 5) for _ in range(40)])
    labels = np.random.RandomState(0).randint(0, 2, 200)
    model = Auto(candidates={"crf": CRF(), "svm": HMSVM(), "other": HMM()})
    data = model._training_data(corpus, ["a", "b"], labels)

    def members(every, time=1.0):
        """Each candidate is wrong at every so many nodes."""
        search = auto._Search(model, data)
        search.race.tests = [np.arange(40)]
        for k, (trial, step) in enumerate(zip(search.race.trials, every, strict=True)):
            predicted = np.where(np.arange(200) % step == k, 1 - labels, labels)
            opinion = Opinion(np.where(np.eye(2)[predicted] > 0, 2.0, 0.0), np.zeros((2, 2)))
            trial.outputs, trial.times = [Output(opinion, predicted)], [(100, Times(time, time))]
            trial.candidate = replace(trial.candidate, teams=(0,) if k < 2 else ())
        search.race._evaluate()
        return {trial.candidate.name for trial in search.choice().trials}

    assert {"crf", "svm"} <= members((20, 20, 15))
    assert "other" in members((4, 3, 200))
    assert members((20, 20, 15), time=30.0) == {"crf"}  # there is no time for both


def test_of_two_teams_the_data_choose():
    """Members of the first are wrong at the same nodes, those of the second at different ones."""
    corpus = Corpus([Sequence(["x"] * 5) for _ in range(40)])
    labels = np.random.RandomState(0).randint(0, 2, 200)
    model = Auto(candidates={name: CRF() for name in "abcde"})
    search = auto._Search(model, model._training_data(corpus, ["a", "b"], labels))
    search.race.tests = [np.arange(40)]
    teams, wrong = [(0,), (0,), (0, 1), (1,), (1,)], [0, 0, 0, 1, 2]
    for trial, of, at in zip(search.race.trials, teams, wrong, strict=True):
        predicted = np.where(np.arange(200) % 20 == at, 1 - labels, labels)
        opinion = Opinion(np.where(np.eye(2)[predicted] > 0, 2.0, 0.0), np.zeros((2, 2)))
        trial.outputs, trial.times = [Output(opinion, predicted)], [(100, Times(1.0, 1.0))]
        trial.candidate = replace(trial.candidate, teams=of)
    search.race._evaluate()
    assert {trial.candidate.name for trial in search.choice().trials} == {"c", "d", "e"}


def test_where_time_was_over_early_the_default_has_a_partner(monkeypatch):
    monkeypatch.setattr(search, "_REPRESENTATIVE_SHARE", 100.0)
    few = {"crf": CRF(), "hmm": HMM(), "more": CRF(l2=0.1), "svm": HMSVM()}
    model = Auto(candidates=few).fit(X, Y)
    assert [type(member) for member in model.best_.members] == [CRF, HMSVM]
    assert not model.best_.decoder.bias.any()
    assert model.predict(X[:1])[0] == Y[0]
    assert isinstance(Auto(candidates=few, combine=False).fit(X, Y).best_, CRF)
    assert isinstance(Auto(candidates={"crf": CRF(), "hmm": HMM()}).fit(X, Y).best_, CRF)


def test_trees_and_graphs_are_labelled():
    trees = [Tree(["eats", "Ana", "rice"], [-1, 0, 0]), Tree(["sees", "Bo", "Ana"], [-1, 0, 0])] * 4
    labels = [["root", "subj", "obj"]] * 8
    few = {"crf": CRF(features="word"), "kernel": MarginalizedPerceptron(orders=1, epochs=2)}
    assert Auto(candidates=few).fit(trees, labels).predict(trees[:1])[0] == labels[0]
    dags = [Dag(tree.observations, [(0, 1), (0, 2)]) for tree in trees]
    few = {"kernel": few["kernel"], "word": MarginalizedPerceptron(orders=1, epochs=2, features="word")}
    assert Auto(candidates=few).fit(dags, labels).predict(dags[:1])[0] == labels[0]


def test_weights_and_unknown_labels_are_passed_on():
    labels = [["N"], ["V"], ["N"], ["V"]] * 3
    weights = [1.0, 0.0, 1.0, 0.0] * 3
    few = {"crf": CRF(features="word"), "hmm": HMM()}
    model = Auto(candidates=few, combine=False).fit([["x"]] * 12, labels, sample_weight=weights)
    assert model.predict([["x"]])[0] == ["N"]
    partly = [[None, *labels[1:]] for labels in Y]
    assert Auto(candidates=FEW).fit(X, partly).predict(X[:1])[0][1:] == Y[0][1:]


def test_an_interrupt_fits_the_best_so_far(monkeypatch):
    calls = []
    fit = HMM._fit

    def interrupted(self, data):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        fit(self, data)

    monkeypatch.setattr(HMM, "_fit", interrupted)
    with pytest.warns(ConvergenceWarning, match="Auto was interrupted; it fits the best model so far"):
        model = Auto(candidates=FEW, n_jobs=1).fit(X, Y)
    assert model.predict(X[:1])[0] == Y[0]
    assert [row["folds"] for row in model.report_.rows if row["name"] == "crf"] == [1]
    calls.clear()
    with pytest.warns(ConvergenceWarning, match="interrupted"):  # before anything is known
        model = Auto(candidates={"hmm": HMM(), "crf": CRF()}).fit(X, Y)
    assert isinstance(model.best_, HMM)


def test_an_interrupt_ends_the_fits_in_other_threads(default_signals):
    """The signal arrives in the main thread; the perceptron would go on for ever."""
    epochs = []

    def interrupt(progress):
        epochs.append(threading.current_thread() is threading.main_thread())
        if len(epochs) == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    labels = [["N"], ["V"]] * 6  # of the same word
    few = {"hmm": HMM(), "endless": HMPerceptron(epochs=10**9, callback=interrupt)}
    with pytest.warns(ConvergenceWarning, match="Auto was interrupted; it fits the best model so far"):
        model = Auto(candidates=few, n_jobs=2).fit([["x"]] * 12, labels)
    assert isinstance(model.best_, HMM)
    assert not any(epochs)
    assert len(epochs) >= 3


def test_side_by_side_the_scores_are_the_same():
    def rows(n_jobs):
        model = Auto(candidates=FEW, n_jobs=n_jobs).fit(X, Y)
        assert model.n_jobs == n_jobs
        return {row["name"]: (row["score"], row["spread"], row["folds"]) for row in model.report_.rows}

    assert rows(1) == rows(3)


def test_compilation_does_not_count(monkeypatch):
    """Each family learns from a few structures first, and the clock begins after that."""
    sizes, fit = [], HMM._fit

    def remembered(self, data):
        sizes.append(len(data.encoded.corpus))
        fit(self, data)

    monkeypatch.setattr(HMM, "_fit", remembered)
    monkeypatch.setattr(auto, "_WARM_UP_NODES", 10)
    model = Auto(candidates={"hmm": HMM(), "smooth": HMM(smoothing=2.0)}).fit(X, Y)
    assert sizes[:3] == [8, 6, 6]
    members = len(model.report_.chosen.split("+"))
    assert sum(row["folds"] for row in model.report_.rows) == len(sizes) - 1 - members


def test_a_callback_can_end_the_comparison():
    seen = []

    def three(progress):
        seen.append(progress.iteration)
        if progress.iteration == 3:
            raise StopIteration

    model = Auto(candidates=FEW, callback=three).fit(X, Y)
    assert seen == [1, 2, 3]
    assert model.predict(X[:1])[0] == Y[0]


def test_the_folds_are_seeded():
    def scores(random_state):
        model = Auto(candidates={"hmm": HMM(), "crf": CRF(max_iter=3)}, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return [(row["name"], row["score"], row["spread"]) for row in model.fit(X, Y).report_.rows]

    assert scores(3) == scores(3) == scores(np.random.RandomState(3))
    assert scores(None)


def test_the_budget_grows_with_the_data():
    assert [auto.budget_for(nodes) for nodes in (1, 13_000, 26_000, 10**6)] == [60, 60, 120, 1200]


def test_one_structure_and_no_time_are_enough_for_the_default():
    assert isinstance(Auto(candidates=FEW).fit(X[:1], Y[:1]).best_, CRF)
    model = Auto(budget=0, candidates=FEW).fit(X, Y)
    assert isinstance(model.best_, CRF | Combination)
    assert model.predict(X[:1])[0] == Y[0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget": -1}, "budget=-1: give seconds"),
        ({"budget": "1m"}, "budget='1m': give seconds"),
        ({"combine": 1}, "combine=1"),
        ({"candidates": {}}, "give a dict of names to labelers"),
        ({"candidates": {"a": 3}}, "'a' is 3; give names and labelers"),
        ({"candidates": {"a": Auto()}}, "give names and labelers"),
        ({"candidates": {"a": CRF(checkpoint="x")}}, "checkpoint"),
        ({"candidates": {"a": CRF(l2=-1)}}, "l2"),
        ({"features": "nothing"}, "no such feature set"),
    ],
)
def test_mistakes_are_named(parameters, message):
    with pytest.raises(DataError, match=message):
        Auto(**parameters).fit(X, Y)


def test_the_default_is_chosen_unless_another_is_clearly_better(monkeypatch):
    corpus = Corpus([Sequence(["x"] * 5) for _ in range(40)])
    labels = np.random.RandomState(0).randint(0, 2, 200)
    model = Auto(candidates={"default": HMM(), "other": HMM()}, combine=False)

    def chosen(default_mistakes, other_mistakes, seconds=1.0):
        search = auto._Search(model, model._training_data(corpus, ["a", "b"], labels))
        search.race.tests = [np.arange(40)]
        for trial, mistakes in zip(search.race.trials, (default_mistakes, other_mistakes), strict=True):
            predicted = np.where(np.isin(np.arange(200), mistakes), 1 - labels, labels)
            trial.outputs = [Output(Opinion(np.eye(2)[predicted]), predicted)]
            trial.times = [(100, Times(seconds, seconds))]
        search.race._evaluate()
        return search.choice().trials[0].candidate.name

    assert chosen([3, 50, 90], [7, 120]) == "default"
    assert chosen(range(0, 200, 5), [7, 120]) == "other"
    with monkeypatch.context() as small:  # compared on a small part of all
        small.setattr(search, "_REPRESENTATIVE_SHARE", 1.1)
        assert chosen(range(0, 200, 5), [7, 120]) == "default"
    assert chosen([7], [3, 50]) == "default"
    assert chosen(range(0, 200, 5), [7, 120], seconds=100.0) == "default"  # no time for the other


def test_each_node_is_labelled_by_itself_where_that_is_better(monkeypatch, tmp_path):
    """Labels without a scheme: the node of largest marginal is right where Viterbi is not."""
    labels = [["a", "b", "a", "b", "c"] for _ in X[:8]]
    output_of = Fits.output

    def better_alone(self, model, encoded):
        output = output_of(self, model, encoded)
        assert output.posterior is not None
        true = np.tile([0, 1, 0, 1, 2], len(encoded.corpus))
        return output._replace(labels=np.where(np.arange(len(true)) % 5 < 2, 2, true), posterior=true)

    words = [x[:5] for x in X[:8]]
    few = {"crf": CRF(features="word"), "hmm": HMM()}
    model = Auto(candidates=few, combine=False, n_jobs=1).fit(words, labels)
    assert model.best_.decode == "viterbi"
    monkeypatch.setattr(Fits, "output", better_alone)
    model.fit(words, labels)
    assert model.best_.decode == "posterior"
    assert "the best label of each node" in model.report_.chosen
    model.save(tmp_path / "auto.fuda")
    assert fuda.load(tmp_path / "auto.fuda").best_.decode == "posterior"


def test_posterior_decoding_is_a_choice_for_labels_without_a_scheme():
    split = Split(np.arange(6), np.arange(6, 12))
    letters = [[label[0] for label in labels] for labels in Y]
    plain = Fits(training_data(X, letters), None)
    posterior = CRF(features="word", decode="posterior").fit(X[:6], letters[:6]).predict(X[6:])
    output = plain(Candidate("crf", CRF(features="word")), split, 1)
    assert ["BIO"[k] for k in output.posterior] == [label for labels in posterior for label in labels]
    assert plain(Candidate("perceptron", FEW["perceptron"]), split, 1).posterior is None
    schemed = Fits(training_data(X, Y), "IOB2")
    assert schemed(Candidate("crf", CRF(features="word")), split, 1).posterior is None


@pytest.mark.parametrize("budget", [0.01, 3])
def test_too_few_labels_to_compare_on_are_enough_to_learn_from(budget):
    X, unknown = [["a", "b"], ["c"]] * 6, [[None, None], [None]] * 6
    model = Auto(budget, candidates={"hmm": HMM(), "crf": CRF()}).fit(X, [["A", "B"], *unknown[1:]])
    assert list(model.predict([["a", "b"]])[0]) == ["A", "B"]
    with pytest.raises(DataError, match="every label in y is None"):
        model.fit(X, unknown)


def test_what_compiles_takes_few_iterations(monkeypatch):
    """Outside of the budget, a learner that does not converge would take any time."""
    seen, fitted = [], Fits._fitted

    def spied(self, candidate, train, quick, n_jobs):
        seen.append((candidate.name, len(train.encoded.corpus), candidate.quick))
        return fitted(self, candidate, train, quick, n_jobs)

    monkeypatch.setattr(Fits, "_fitted", spied)
    X = [[f"w{(i * j) % 7}" for j in range(60)] for i in range(1, 21)]
    y = [["A" if word < "w3" else "O" for word in x] for x in X]
    auto.Auto(5, candidates={"crf": CRF(), "hm-perceptron": HMPerceptron()}).fit(X, y)
    brief = [(name, count) for name, count, quick in seen if quick == auto._WARM_UP_PARAMETERS]
    assert brief == [("crf", auto._WARM_UP_STRUCTURES), ("hm-perceptron", auto._WARM_UP_STRUCTURES)]
    assert [name for name, count, _ in seen if count > auto._WARM_UP_STRUCTURES]
