import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.policy.text import MAX_BYTES, read_text


def data(text: str) -> object:
    read = read_text(text)
    assert read.violations == []
    return read.data


def refusals(text: str) -> list[tuple[str, str, str]]:
    return [(one.path, one.value, one.rule) for one in read_text(text).violations]


def test_yaml_and_json_are_read_alike() -> None:
    want = {"a": {"b": [1, 2.5, True, None, "x"]}}

    assert data("a:\n  b: [1, 2.5, true, null, x]\n") == want
    assert data('{"a": {"b": [1, 2.5, true, null, "x"]}}') == want
    assert data('{\n\t"a": {"b": [1, 2.5, true, null, "x"]}\n}') == want


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("no", "no"),
        ("2026-11-20T09:00Z", "2026-11-20T09:00Z"),
        ("2026-11-20", "2026-11-20"),
        ("12:30", "12:30"),
        ("007", "007"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("+5", 5),
        ("-1.5e3", -1500.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".inf", ".inf"),
        ("~", None),
        ("", None),
        ("False", False),
        ('"1"', "1"),
        ("!!int x", "x"),
        ("!!float x", "x"),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_a_plain_word_means_what_it_says(word: str, want: object) -> None:
    assert data(f"a: {word}") == {"a": want}


def test_anchors_repeat_what_they_name() -> None:
    assert data("a: &x {k: 1}\nb: *x") == {"a": {"k": 1}, "b": {"k": 1}}


def test_a_key_that_is_given_twice_is_refused_with_both_lines() -> None:
    assert refusals("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n") == [("b.c", "line 5", "is given twice (first in line 3)")]
    assert refusals('{"a": 1,\n "a": 2}') == [("a", "line 2", "is given twice (first in line 1)")]


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        ("a: [1, 2\nb: 3\n", "line 2, column 2", '"b: 3"'),
        ("a: 1\n b: 2\n", "line 2, column 3", '"b: 2"'),
        ("a: 'x\n", "line 2, column 1", '""'),
        ("a: *nobody\n", "line 1, column 4", '"a: *nobody"'),
        ("a: 1\n---\nb: 2\n", "line 2, column 1", '"---"'),
        ("a: \x07\n", "(document)", '""'),
    ],
    ids=["open bracket", "indentation", "open quote", "unknown anchor", "two documents", "control character"],
)
def test_a_mistake_of_syntax_is_named_with_its_line(text: str, place: str, line: str) -> None:
    [(path, value, rule)] = refusals(text)

    assert (path, value) == (place, line)
    assert rule.startswith("is not valid YAML or JSON: ")


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", "nothing"), ("# only a comment", "nothing"), ("- a", "a list"), ("hello", "a word")],
)
def test_a_document_is_a_mapping(text: str, kind: str) -> None:
    assert refusals(text) == [("(document)", kind, "must be a mapping such as `apiVersion: taskgov/v1`")]


@pytest.mark.parametrize("tag", ["!!python/object:os.system", "!!binary", "!Ref", "!!timestamp"])
def test_tags_mean_nothing_here(tag: str) -> None:
    [(path, _, rule)] = refusals(f"a:\n  - {tag} x")

    assert path == "a[0]"
    assert rule == "has a tag that is not supported (line 2)"


@pytest.mark.parametrize("value", ["!foo [x]", "!foo {k: x}", "!!set {x}", "!!map [x]", "!!seq {k: x}", "!foo\n  - x"])
def test_a_tag_of_a_list_or_a_mapping_means_nothing_either(value: str) -> None:
    [(path, _, rule)] = refusals(f"a: {value}")
    assert (path, rule) == ("a", "has a tag that is not supported (line 1)")


def test_tags_that_say_what_a_value_is_anyway_are_allowed() -> None:
    assert data("a: !!seq [!!str x]\nb: !!map {k: !!int 1}\nc: ! [x]") == {"a": ["x"], "b": {"k": 1}, "c": ["x"]}


def test_keys_that_are_no_words_are_read_as_what_they_are() -> None:
    assert data("1: a\ntrue: b") == {"1": "a", "true": "b"}
    assert data("? [x]\n: 1") == {"a list": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9) if n else '1'}]\n" for n in range(9)),
        "a: " + "[" * 50 + "]" * 50,
        "a: " + "[" * 20_000,
        "a: x" + "x" * MAX_BYTES,
    ],
    ids=["itself", "aliases of aliases", "deep", "endless brackets", "long"],
)
def test_a_document_that_unfolds_beyond_reason_is_refused(text: str) -> None:
    assert read_text(text).data is None
    [(path, _, _)] = refusals(text)
    assert path == "(document)"


SOME = "a: \u00e9t\u00e9\n"


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (f"b: 1\n{SOME}".encode("latin-1"), "byte 0xe9 in line 2 (Latin-1 or Windows-1252?)"),
        (SOME.encode("utf-16"), "UTF-16 or UTF-32 (it has null bytes)"),
        (SOME.encode("utf-16-le"), "UTF-16 or UTF-32 (it has null bytes)"),
        (SOME.encode("utf-16-be"), "UTF-16 or UTF-32 (it has null bytes)"),
        (SOME.encode("utf-32"), "UTF-16 or UTF-32 (it has null bytes)"),
        (b"\xff\xfe", "UTF-16 (by its first bytes)"),
        ("a: \ud800", "byte 0xed in line 1 (Latin-1 or Windows-1252?)"),
    ],
    ids=["latin-1", "utf-16", "utf-16 without mark", "big end first", "utf-32", "mark alone", "half a pair"],
)
def test_what_is_not_utf_8_is_refused(body: str | bytes, value: str) -> None:
    [one] = read_text(body).violations

    assert (one.path, one.value, one.rule) == ("(document)", value, "must be UTF-8 text")


def test_a_byte_order_mark_of_utf_8_means_nothing() -> None:
    assert read_text(SOME.encode("utf-8-sig")).data == read_text(SOME).data == {"a": "\u00e9t\u00e9"}


@pytest.mark.parametrize(
    "text",
    [
        "a: [" + "1," * (MAX_BYTES // 2 - 10) + "]",
        "a: " + "[" * (MAX_BYTES - 10),
        "- " * (MAX_BYTES // 2),
        "a: 'x" + "\n" * (MAX_BYTES - 10) + "'",
        "a: " + "&a " * (MAX_BYTES // 3 - 10),
        "".join(f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]\n" if n else "k0: &k0 1\n" for n in range(60_000)),
        "a: 1\n" * (MAX_BYTES // 5),
    ],
    ids=["flow list", "brackets", "dashes", "empty lines", "anchors", "aliases", "keys given twice"],
)
def test_whatever_is_in_two_megabytes_costs_little(text: str) -> None:
    before = time.process_time()
    read_text(text)

    assert time.process_time() - before < 5


@given(st.text(alphabet="ab:-[]{},&*!|>'\"#%@ \n\t\\0.1", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = read_text(text)

    assert isinstance(read.data, dict) or read.violations
