"""The report's dict says what the fit's frames say; the page holds it, whatever the names."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import mtlirt
from mtlirt.report import Evidence, facts, render
from mtlirt.report.checks import correlations, item_checks
from mtlirt.report.evidence import read_record
from mtlirt.report.page import as_json
from mtlirt.report.reading import reading_facts
from mtlirt.report.words import isolated, leader

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" & 'single' `tick`",
    "🦙 emoji 日本語",
    "\u202eright-to-left\u202c שלום مرحبا",
    "x" * 300,
    "=cmd()",
    "{{ 7 * 7 }} ${alert(1)}",
    "line\u2028separator",
    "$a_b$",
]


def named(responses, models=(), domains=(), items=()):
    """The same answers under other names, for the first of each."""
    new = responses.to_long()
    for column, names in (("model", models), ("domain", domains), ("item", items)):
        held = list(dict.fromkeys(new[column]))
        new[column] = new[column].astype(str).replace(dict(zip(held, names, strict=False)))
    return mtlirt.Responses.from_long(new)


@pytest.fixture(scope="module")
def hostile(small) -> mtlirt.Responses:
    return named(small.responses, HOSTILE, HOSTILE[:3], HOSTILE)


@pytest.fixture(scope="module")
def cv(demo) -> mtlirt.CVResult:
    """A cross-validation that chooses a lam between the ends, of answers with a gap."""
    return mtlirt.cv_mtl(demo, lams=[20.0, 11.0], folds=3)


@pytest.fixture(scope="module")
def told(demo, cv):
    return facts(cv.fit, Evidence.of(cv.fit, cv, demo))


def values(column, digits):
    """A frame's column as the dict has it."""
    return [None if pd.isna(x) or not np.isfinite(x) else float(np.round(x, digits)) for x in column]


def plain(value) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and plain(v) for k, v in value.items())
    return (
        all(map(plain, value)) if isinstance(value, list) else value is None or type(value) in (str, int, float, bool)
    )


def test_leaderboard_is_the_frame_of_scores(told, cv):
    scores = cv.fit.scores(se=True)
    assert [column["name"] for column in told["leaderboard"]] == list(scores)
    digits = {"model": None, "borrowed": None, "mean_score": 4, "general_rank": 0, "mean_score_rank": 0}
    for column in told["leaderboard"]:
        d = digits.get(column["name"], 4)
        assert column["values"] == (list(scores[column["name"]]) if d is None else values(scores[column["name"]], d))
    assert [c["label"] for c in told["leaderboard"] if c["kind"] == "trait"] == list(cv.fit.domains)


def test_domains_items_and_ranks_are_the_frames(told, demo, cv):
    table, items = cv.fit.heterogeneity(), cv.fit.items
    assert told["heterogeneity"]["domain"] == list(table["domain"])
    assert told["heterogeneity"]["sine"] == values(table["sine"], 4)
    assert told["heterogeneity"]["fused"] == list(table["fused"])
    gains = cv.per_domain.set_index("domain").loc[table["domain"]]
    assert told["heterogeneity"]["gain_over_separate"] == values(gains["gain_over_separate"], 5)
    for name, digits in (("a", 4), ("d", 4), ("mean_score", 4), ("n_answers", 0)):
        assert told["items"][name] == values(items[name], digits)
    without = items["flag"].isin(["all right", "all wrong"]) | (items["b"].abs() > 100)
    assert told["items"]["b"] == values(items["b"].mask(without), 4)
    assert [told["domains"][t] for t in told["items"]["domain"]] == list(items["domain"])
    ranks = mtlirt.compare_pooling(demo, cv=cv).ranks
    labels = {"chosen": "chosen lam", "separate": "separate domains", "complete": "complete pooling"}
    assert [column["label"] for column in told["ranks"]] == [*labels.values(), "mean score"]
    for column, name in zip(told["ranks"], [*labels, "mean_score"], strict=True):
        assert column["values"] == list(ranks[name])
    quantiles = cv.fit.theta.quantile([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    assert told["spread"] == [values(quantiles[d], 4) for d in cv.fit.domains]


def test_verdict(told, cv):
    said = {each["about"]: each["text"] for each in told["verdict"]}
    assert list(said) == ["Who leads", "Domains", "Pooling", "How sure", "Items", "The fit"]
    assert said["Who leads"].startswith(f"{isolated(cv.fit.general.idxmax())} has the highest general trait")
    assert "se " in said["Pooling"]
    assert "take the items as known" in said["How sure"]
    assert said["The fit"].startswith("Converged")
    assert len(told["method"]) == 4
    assert told["left_out"] == {"domains": None, "items": None}
    assert [picture["name"] for picture in told["pictures"]] == ["correlation", "heterogeneity", "cv", "path"]


def test_data_in_words(told, cv):
    said = dict(told["data"])
    assert said["Models"].startswith("120, with ")
    assert said["Items"] == "260 in 6 domains, 30 to 60 in each"
    assert said["Answers"] == f"{cv.fit.n_answers:,}, 4.3% of the table missing"


def test_leader_counts_those_within_two_standard_errors_of_the_difference():
    scores = pd.DataFrame(
        {
            "model": ["a", "b", "c"],
            "general": [2.0, 1.8, 1.0],
            "general_rank": [1, 2, 3],
            "se:general": [0.1, 0.1, 0.1],
        }
    )
    assert "1" not in leader(scores).split("deviation 1.")[1]
    assert leader(scores).endswith("another is not clearly behind it, within two standard errors: \u2068b\u2069.")
    assert "ahead of every other model" in leader(scores.drop(1))  # 2 * sqrt(.02) = .28
    unknown = scores.assign(**{"se:general": [0.1, 0.1, np.nan]})  # nothing says how far c is behind
    assert leader(unknown).endswith(
        "2 others are not clearly behind it, within two standard errors: \u2068b\u2069, \u2068c\u2069."
    )
    assert "no standard error" in leader(scores.assign(**{"se:general": np.nan}))


@pytest.mark.parametrize("lam", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("domains", [1, 2, 4])
def test_any_fit_has_a_report(small, lam, domains):
    answers = small.responses.subset(domains=small.responses.domains[:domains])
    frame = answers.to_long()
    frame.loc[(frame["model"] == answers.models[0]) & (frame["domain"] == answers.domains[-1]), "score"] = np.nan
    if domains > 1:
        answers = mtlirt.Responses.from_long(frame)
    fit = mtlirt.fit_mtl(answers, lam)
    told = facts(fit)
    assert plain(told)
    assert len(told["gaps"]["model"]) == (domains > 1)
    assert render(told).count("<svg") == (0 if domains == 1 or np.isinf(lam) else 2)
    words = told["left_out"]["domains"]
    assert ("one domain" in words, "No cross-validation" in words) == (domains == 1, domains > 1)
    assert "1 domains" not in render(told)
    if lam == 0 and domains > 1:
        assert [c["values"][0] for c in told["leaderboard"] if c["kind"] == "trait"][-1] is None


@pytest.mark.parametrize("model", ["nrm", "llm_nrm", "mtl_nrm"])
def test_option_models(golden_options, model):
    fit = getattr(mtlirt, f"fit_{model}")(golden_options, *([1.0] if model == "mtl_nrm" else []))
    told = facts(fit, Evidence.of(fit, responses=golden_options))
    assert plain(told)
    assert told["habits"] == (model == "llm_nrm")
    options = told["options"]
    assert options["first"][-1] == len(fit.options) == len(options["option"])
    assert options["a"] == values(fit.options["a"], 4)
    assert np.array(options["right"], dtype=bool).tolist() == list(fit.options["right"])
    assert "exp(a_k theta + c_k)" in render(told)


def test_a_fit_that_did_not_converge_says_so(small):
    with pytest.warns(mtlirt.ConvergenceWarning):
        fit = mtlirt.fit_mtl(small.responses, 1.0, solver=mtlirt.Block(max_sweeps=1))
    assert facts(fit)["verdict"][-1]["text"].startswith("Not converged")


def test_item_checks_find_inverted_and_repeated_items(small):
    frame = small.responses.to_long()
    first, second, third = small.responses.items["item"][:3]
    by = frame.pivot_table(index="model", columns="item", values="score")
    general = by.mean(axis=1)
    frame = frame.set_index(["item", "model"])
    frame.loc[first, "score"] = (general < general.median()).astype(float).reindex(frame.loc[first].index).to_numpy()
    frame.loc[third, "score"] = frame.loc[second, "score"].to_numpy()
    answers = mtlirt.Responses.from_long(frame.reset_index())
    fit = mtlirt.fit_mtl(answers, 1.0)
    checks = item_checks(fit, answers).set_index("item")
    assert checks.loc[first, "inverted"]
    assert checks.loc[third, "same_as"] == f"{small.responses.domains[0]}: {second}"
    assert (checks["same_as"] != "").sum() == 1
    wanted = pd.DataFrame(answers.scores, columns=answers.items["item"], index=answers.models).corrwith(fit.general)
    np.testing.assert_allclose(checks["correlation"], wanted.loc[checks.index])
    told = facts(fit, Evidence.of(fit, responses=answers))
    assert told["items"]["flags"][0].endswith("inverted")
    assert told["items"]["flags"][2].endswith("duplicate")
    with pytest.raises(mtlirt.InputError, match="the answers that were fitted"):
        item_checks(fit, answers.subset(models=list(answers.models[:30])))


def test_correlations_leave_missing_answers_out():
    rng = np.random.default_rng(0)
    scores, general = rng.integers(2, size=(30, 5)).astype(float), rng.normal(size=30)
    scores[rng.random(scores.shape) < 0.2] = np.nan
    scores[:, 4] = np.where(np.isnan(scores[:, 4]), np.nan, 1.0)
    found, n = correlations(scores, general)
    frame = pd.DataFrame(scores)
    np.testing.assert_allclose(found[:4], frame.corrwith(pd.Series(general))[:4])
    assert np.isnan(found[4])
    assert n.tolist() == frame.count().tolist()


def test_flags_follow_the_items(small):
    fit = mtlirt.fit_mtl(small.responses, 1.0)
    flags = facts(fit)["items"]["flags"]
    varied = ~fit.items["flag"].isin(["all right", "all wrong"])
    assert [flag == "flat" for flag in flags] == list(varied & (fit.items["a"] == 0))
    assert ["at bound" in flag for flag in flags] == list(varied & fit.items["at_bound"] & (fit.items["a"] > 0))


# The page ------------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.ids, self.scripts, self.inside = [], [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


def test_hostile_names_stay_names(hostile):
    fit = mtlirt.fit_mtl(hostile, 1.0)
    told = facts(fit, Evidence.of(fit, responses=hostile))
    text = render(told)
    page = Page(text)
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    data = json.loads(page.scripts[0])
    assert data["leaderboard"][0]["values"][: len(HOSTILE)] == HOSTILE
    assert data["domains"][:3] == HOSTILE[:3]
    assert data["items"]["item"] == list(fit.items["item"])
    assert any(HOSTILE[0] in each for each in page.text)  # the heterogeneity table
    assert not re.search(r"\b(src|href)=.https?:", text)
    assert "\u2028" not in page.scripts[0]


def test_page_is_self_contained_and_its_ids_are_unique(told):
    text = render(told)
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"<(link|iframe|img|script src)", text)
    assert not re.search(r"@import|url\(.?http|fetch\(|XMLHttpRequest|innerHTML", text)
    for reference in re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', text):
        assert "".join(reference) in page.ids


def test_same_numbers_same_bytes(demo, cv, told):
    assert render(told) == render(facts(cv.fit, Evidence.of(cv.fit, cv, demo)))


def test_json_for_a_script():
    value = {"a": "</script><!-- & \u2028 \u2029 '\""}
    assert not set("<>&\u2028\u2029") & set(as_json(value))
    assert json.loads(as_json(value)) == value


def test_fit_report_writes_a_file(demo, cv, told, tmp_path):
    path = cv.fit.report(tmp_path / "r.html", cv=cv, responses=demo)
    assert path.read_text(encoding="utf-8") == render(told)
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    other = mtlirt.fit_mtl(demo.subset(domains=["law"]), 1.0)
    with pytest.raises(mtlirt.InputError, match="other answers"):
        other.report(tmp_path / "s.html", cv=cv)
    with pytest.raises(mtlirt.InputError, match="cannot be written"):
        other.report(tmp_path / "no" / "s.html")


# Evidence from files -------------------------------------------------------------------------------------------------

LOG = {"format": "lm-eval", "model": "m", "task": "law", "metric": "acc"}
RECORD = {
    "files": [
        {"file": "a", **LOG, "filter": "x", "rows": 3, "used": True},
        {"file": "b", **LOG, "filter": "none", "rows": 2, "used": False},
    ],
    "dropped": [{"file": "a", "reason": "no score", "rows": 4}, {"file": "a", "reason": "no score", "rows": None}],
    "summaries": [{"model": "m", "task": "law", "stated": 0.5, "found": 0.25, "verdict": "differs"}],
    "missing": [{"model": "m", "domain": "law"}],
    "warnings": [f"warning <b>{k}</b>" for k in range(45)],
}


def test_evidence_survives_its_files(demo, cv, tmp_path):
    evidence = Evidence.of(cv.fit, cv, demo, RECORD)
    for name, content in evidence.files().items():
        if isinstance(content, str):
            (tmp_path / name).write_text(content, encoding="utf-8")
        else:
            content.to_csv(tmp_path / name, index=False)
    assert render(facts(cv.fit, Evidence.read(tmp_path))) == render(facts(cv.fit, evidence))
    (tmp_path / "ranks.csv").write_text("model\nx\n")
    with pytest.raises(mtlirt.InputError, match="no column separate"):
        Evidence.read(tmp_path)
    (tmp_path / "ranks.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(mtlirt.InputError, match=r"ranks\.csv: cannot be read"):
        Evidence.read(tmp_path)


def as_text_with_a_huge_number():
    return json.dumps(RECORD).replace('"rows": 3', '"rows": 1e400')


def test_no_evidence_in_an_empty_folder(tmp_path):
    assert Evidence.read(tmp_path) == Evidence()
    for text in ("[]", "{", "[" * 100_000, json.dumps({**RECORD, "files": None}), as_text_with_a_huge_number()):
        (tmp_path / "reading.json").write_text(text)
        with pytest.raises(mtlirt.InputError, match=r"reading\.json"):
            Evidence.read(tmp_path)
    assert read_record(tmp_path / "reading.json") is None  # a log beside a table may be anybody's


def test_reading_log(cv):
    read = reading_facts(RECORD)
    assert (read["files"], read["used"], read["answers"], read["gaps"]) == (2, 1, 3, 1)
    assert read["left_out"] == [["no score", 5]]
    assert read["scores"] == [["law: acc (x)", 1]]
    assert read["differs"] == ["\u2068m\u2069, \u2068law\u2069: stated 0.5, found 0.25"]
    assert (len(read["warnings"]), read["more_warnings"]) == (40, 5)
    text = render(facts(cv.fit, Evidence(reading=RECORD)))
    assert "warning &lt;b&gt;1&lt;/b&gt;" in text
    assert "and 5 more" in text


@pytest.mark.slow
def test_size_of_a_large_leaderboard():
    """Under 8 MB at 4,272 models and 56 domains, with all items."""
    answers = mtlirt.simulate(mtlirt.LeaderboardDesign(), 1).responses
    fit = mtlirt.fit_mtl(answers, 80.0)
    text = render(facts(fit, Evidence.of(fit, responses=answers)))
    assert len(text.encode()) < 8e6
