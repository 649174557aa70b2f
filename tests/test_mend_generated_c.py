"""The two orders that mypyc gets wrong, in pieces of what it writes."""

from __future__ import annotations

import pytest
from mend_generated_c import CannotMend, mended


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def test_what_is_neither_stays_as_it_is() -> None:
    text = "    CPy_DECREF(cpy_r_r5);\n    cpy_r_r5 = NULL;\n    Py_CLEAR(self->_file);\n"

    assert text == mended(text)


def test_an_attribute_is_set_before_its_old_value_is_let_go() -> None:
    actual = mended("""
        CPy_DECREF(((SegObject *)self)->__file);
        ((SegObject *)self)->__file = cpy_r_r9;
        return 1;
    """)

    expected = """
        { __typeof__(((SegObject *)self)->__file) old_value = ((SegObject *)self)->__file;
        ((SegObject *)self)->__file = cpy_r_r9;
        CPy_DECREF(old_value);
        }
        return 1;
    """
    assert lines(expected) == lines(actual)


def test_an_attribute_that_may_be_unset_or_a_tuple_keeps_its_condition() -> None:
    actual = mended("""
        if (self->_key.f0 != NULL) {
        CPy_DECREF_NO_IMM(self->_key.f0);
        CPyTagged_DECREF(self->_key.f1);
        }
        self->_key = tmp;
    """)

    expected = """
        { __typeof__(self->_key) old_value = self->_key;
        self->_key = tmp;
        if (old_value.f0 != NULL) {
        CPy_DECREF_NO_IMM(old_value.f0);
        CPyTagged_DECREF(old_value.f1);
        }
        }
    """
    assert lines(expected) == lines(actual)


def test_a_generator_is_offered_again_when_its_variables_are_let_go() -> None:
    actual = mended("""
        if (places_gen_free_instance == NULL) {
        places_gen_free_instance = self;
        Py_CLEAR(self->_file);
        return;
        }
        CPy_TRASHCAN_BEGIN(self, places_gen_dealloc)
    """)

    expected = """
        if (places_gen_free_instance == NULL) {
        Py_CLEAR(self->_file);
        if (places_gen_free_instance == NULL) {
        places_gen_free_instance = self;
        return;
        }
        }
        CPy_TRASHCAN_BEGIN(self, places_gen_dealloc)
    """
    assert lines(expected) == lines(actual)


@pytest.mark.parametrize(
    "text",
    [
        "{\nCPy_DECREF(self->_file);\nreturn 1;\n}\n",
        "{\nCPy_DECREF(self->_file);\nself->_index = cpy_r_r9;\n}\n",
        "{\nif (x_free_instance == NULL) {\nx_free_instance = self;\n}\n}\n",
        "{\nif (unlikely(x)) {\nx_free_instance = self;\nreturn;\n}\n}\n",
    ],
)
def test_another_form_is_an_error(text: str) -> None:
    with pytest.raises(CannotMend):
        mended(text)
