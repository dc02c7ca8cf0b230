import pytest

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels import Linear, Matern52, Periodic, White, parse


def test_names_sums_products_and_columns():
    assert parse("matern52") == Matern52()
    assert parse("matern52 + linear(age)") == Matern52() + Linear(("age",))
    assert parse("(matern52 + white) * periodic('day of year', 2)") == (Matern52() + White()) * Periodic(
        ("day of year", 2)
    )


@pytest.mark.parametrize(
    "text",
    ["", "matern", "matern52 - linear", "linear(x=1)", "linear(1 + 2)", "matern52 +", "open('f')", "3"],
)
def test_anything_else_is_refused_with_the_names_there_are(text):
    with pytest.raises(InputError, match="matern52"):
        parse(text)
