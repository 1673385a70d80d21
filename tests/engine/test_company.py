"""Whom the writer waits for: judged by what came of waiting before."""

from itertools import pairwise

import pytest

from core_console.company import Company

COMMIT_S = 0.004


class Course:
    """A company whose batches are taken and answered, on a clock of its own."""

    def __init__(self) -> None:
        self.company = Company()
        self.now_s = 0.0

    def batch(self, taken: int, *, waiting: int = 0, gathered: bool = True) -> int:
        """Commit a batch; return after how many idle polls the next wait is given up."""
        self.company.taken(taken, gathered=gathered, now_s=self.now_s)
        self.now_s += COMMIT_S
        self.company.answered(waiting, self.now_s)
        return self.company.idle_polls


def test_a_company_is_those_who_were_answered_and_those_who_came_meanwhile() -> None:
    course = Course()
    course.batch(3, waiting=2, gathered=False)
    assert course.company.size == 5
    assert course.company.is_awaited(4, course.now_s)
    assert not course.company.is_awaited(5, course.now_s)


@pytest.mark.parametrize(("commit_s", "longest_s"), [(0.001, 0.002), (0.004, 0.008), (1, 0.012)])
def test_nobody_is_awaited_for_long(commit_s: float, longest_s: float) -> None:
    company = Company()
    company.taken(2, gathered=False, now_s=0)
    company.answered(0, commit_s)
    assert company.is_awaited(1, commit_s + longest_s - 0.000_1)
    assert not company.is_awaited(1, commit_s + longest_s + 0.000_1)


def test_those_who_came_back_are_trusted_to_do_so_again() -> None:
    course = Course()
    course.batch(16, gathered=False)
    assert [course.batch(16) for _ in range(3)] == [2, 2, 2]


def test_a_few_may_be_late() -> None:
    course = Course()
    course.batch(16, gathered=False)
    assert course.batch(14, waiting=2) == 2
    assert course.batch(11, waiting=5) == 1


def test_those_who_do_not_come_back_are_waited_for_less_and_less_often() -> None:
    course = Course()
    course.batch(2, waiting=2, gathered=False)
    patience = [course.batch(2, waiting=2) for _ in range(300)]
    tried = [number for number, polls in enumerate(patience) if polls == 2]
    apart = [after - before for before, after in pairwise(tried)]
    assert apart[:6] == [3, 5, 9, 17, 33, 65]
    assert set(apart[6:]) == {65}


def test_one_company_that_comes_back_ends_the_doubt() -> None:
    course = Course()
    course.batch(2, waiting=2, gathered=False)
    for _ in range(20):
        course.batch(2, waiting=2)
    while course.batch(4) != 2:
        pass
    course.batch(4)
    assert course.batch(2, waiting=2) == 1
    assert course.batch(4) == 2
