import errno
import os
import signal
import subprocess
import sys

import pytest

from nongauss.core.errors import InputError
from nongauss.core.files import atomic_path


def test_success_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "out.csv.gz"
    target.write_text("old")
    target.chmod(0o640)
    with atomic_path(target) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.name.endswith(".csv.gz")
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv.gz"]


def _write_half(temporary):
    temporary.write_text("half")
    raise KeyError("stop")


def test_failure_keeps_the_old_file_and_removes_the_temporary_one(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(KeyError, match="stop"), atomic_path(target) as temporary:
        _write_half(temporary)
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_is_followed(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_path(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_missing_folder_and_folder_as_target_are_clear_errors(tmp_path):
    with pytest.raises(InputError, match="folder does not exist"), atomic_path(tmp_path / "no" / "x.txt"):
        pass
    with pytest.raises(InputError, match="it is a folder"), atomic_path(tmp_path):
        pass


def test_what_is_no_file_is_refused_by_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "pipe", tmp_path / "loop", "/dev/null"):
        with pytest.raises(InputError, match=os.path.basename(path)), atomic_path(path):
            pass


def test_a_full_disk_names_the_file_that_was_asked_for(tmp_path):
    def fill(temporary):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as error, atomic_path(tmp_path / "x.csv") as temporary:
        fill(temporary)
    assert error.value.filename == os.fspath(tmp_path / "x.csv")


def test_what_a_killed_process_left_is_swept_by_the_next_that_writes_the_file(tmp_path):
    code = f"""if True:
        import os, signal
        from nongauss.core.files import atomic_path
        with atomic_path({os.fspath(tmp_path / "x.csv")!r}) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    mine = tmp_path / left.name.replace(left.name.split("-")[2], str(os.getpid()))
    mine.write_text("under way")
    with atomic_path(tmp_path / "x.csv") as temporary:
        temporary.write_text("whole")
    assert sorted(tmp_path.iterdir()) == sorted([mine, tmp_path / "x.csv"])
