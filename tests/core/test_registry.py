import enum

from nongauss.core.registry import class_name, is_persistable, persistable, registered_class


@persistable
class Marked(enum.Enum):
    A = 1


class Child:
    pass


def test_a_marked_class_is_found_by_name_and_only_itself():
    assert class_name(Marked).endswith(":Marked")
    assert registered_class(class_name(Marked)) is Marked
    assert is_persistable(Marked)
    assert not is_persistable(Child)
    assert registered_class("nongauss.nowhere:Nothing") is None


def test_marking_does_not_reach_subclasses():
    @persistable
    class Parent:
        pass

    class Heir(Parent):
        pass

    assert is_persistable(Parent)
    assert not is_persistable(Heir)
