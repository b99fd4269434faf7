"""The bar of a command that takes its time."""

from __future__ import annotations

from io import StringIO

import pytest

from solid_runs.management.progress import WIDTH, Progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_is_drawn_anew() -> None:
    stream = Terminal()
    bar = Progress(4, stream)
    for name in "abcd":
        bar.advance(name)
    frames = stream.getvalue().split("\r\033[K")[1:]
    assert [frame.count("█") for frame in frames] == [7, 15, 22, WIDTH]
    assert [frame.count("█") + frame.count("·") for frame in frames] == [WIDTH] * 4
    assert [frame.split()[1:] for frame in frames] == [
        [f"{n}/4", "abcd"[n - 1]] for n in (1, 2, 3, 4)
    ]
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\n")


def test_a_label_that_is_long_is_cut_on_a_terminal() -> None:
    stream = Terminal()
    Progress(2, stream).advance("x" * 500)
    assert len(stream.getvalue()) < 90


@pytest.mark.parametrize("total", [1, 3, 4, 7, 100, 1234])
def test_elsewhere_there_is_a_plain_line_now_and_then_and_one_at_the_end(total: int) -> None:
    stream = StringIO()
    bar = Progress(total, stream)
    for _ in range(total):
        bar.advance()
    lines = stream.getvalue().splitlines()
    assert 1 <= len(lines) <= 7
    assert lines[-1] == f"  {total:,}/{total:,}"
    assert "\r" not in stream.getvalue()
    assert "█" not in stream.getvalue()


def test_many_at_a_time_count_as_many() -> None:
    stream = StringIO()
    bar = Progress(1000, stream)
    for _ in range(10):
        bar.advance("runs", by=100)
    assert [line.split()[0] for line in stream.getvalue().splitlines()] == [
        "300/1,000",
        "500/1,000",
        "800/1,000",
        "1,000/1,000",
    ]


@pytest.mark.parametrize("stream", [StringIO(), Terminal()], ids=["file", "terminal"])
def test_more_than_was_expected_and_nothing_at_all_are_no_faults(stream: StringIO) -> None:
    Progress(0, stream)
    assert stream.getvalue() == ""
    bar = Progress(2, stream)
    for _ in range(5):
        bar.advance()
    assert "5/5" in stream.getvalue()
    Progress(-3, stream).advance()
    assert "1/1" in stream.getvalue()


def test_standard_error_is_where_it_goes_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Progress(1).advance("done")
    caught = capsys.readouterr()
    assert (caught.out, caught.err) == ("", "  1/1 done\n")
