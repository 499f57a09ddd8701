"""Archives of Inspect AI that are cut off, damaged, hostile or in a form that is not read."""

import re
import resource
import struct
import zipfile
import zlib

import pyarrow as pa
import pytest
from inspect_logs import as_eval, log, plain, read

from mtlirt.readers import inspect_files
from mtlirt.readers.fields import LogError


@pytest.fixture(autouse=True, scope="module")
def by_layout():
    """By the documented layout, also where inspect_ai is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_files, "find_spec", lambda name: None)
        yield


def test_a_run_cut_off_has_no_header(tmp_path):
    sheet, problems = read(as_eval(tmp_path, log(plain(1, "C")), header=None))
    assert sheet.notes == ("the run did not end, or was cut off",)
    assert (sheet.summary, len(sheet.rows), problems) == (None, 1, [])


def test_cut_archives(tmp_path):
    path = as_eval(tmp_path, log(plain(1, "C")))
    whole = path.read_bytes()
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        with pytest.raises(LogError, match="is no zip archive, or is cut off"):
            read(path)


def with_member(path, name, content):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.json", "samples/../../x_epoch_1.json", "C:\\x", "\\x"])
def test_names_that_point_out_of_the_archive(tmp_path, name):
    path = with_member(as_eval(tmp_path, log(plain(1, "C"))), name, "{}")
    with pytest.raises(LogError, match="holds a member named"):
        read(path)
    assert [p.name for p in tmp_path.iterdir()] == ["log.eval"]


def test_members_that_unpack_to_too_much(tmp_path):
    path = with_member(as_eval(tmp_path, log(plain(1, "C"))), "samples/2_epoch_1.json", b"0" * (17 << 20))
    sheet, problems = read(path)
    assert len(sheet.rows) == len(problems) == 1
    assert problems[0].startswith("samples/2_epoch_1.json would unpack to 17,825,792 bytes")


def with_field(raw, name, field, value):
    """The archive with another value in a member's record in the directory, whose name comes after 46 bytes."""
    raw = bytearray(raw)
    at = raw.rfind(name.encode()) - 46
    struct.pack_into("<I" if field in (CRC, SIZE) else "<H", raw, at + field, value)
    return bytes(raw)


FLAGS, METHOD, CRC, SIZE = 8, 10, 16, 24  # offsets in a record of the directory, by the zip format


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        (METHOD, 12, "is compressed by method 12, which is not read here"),
        (METHOD, 93, "is damaged"),
        (METHOD, 98, "is compressed by method 98, which is not read here"),
        (FLAGS, 1, "is encrypted"),
        (CRC, 7, "is damaged"),
        (SIZE, (256 << 20) + 1, "would unpack to 268,435,457 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["header.json", "samples/2_epoch_1.json"])
def test_members_that_cannot_be_read(tmp_path, field, value, what, name):
    path = as_eval(tmp_path, log(plain(1, "C"), plain(2, "C")))
    path.write_bytes(with_field(path.read_bytes(), name, field, value))
    if name == "header.json":
        with pytest.raises(LogError, match=f"its header.json {what}"):
            read(path)
        return
    sheet, problems = read(path)
    assert sheet.rows["position"].tolist() == ["1"]
    assert len(problems) == 1
    assert re.match(f"samples/2_epoch_1.json {what}", problems[0])


def test_members_that_lie_about_their_size(tmp_path):
    """No more is unpacked than the size says, so a small archive cannot fill the memory."""
    path = with_member(as_eval(tmp_path, log(plain(1, "C"))), "samples/2_epoch_1.json", b"0" * (200 << 20))
    path.write_bytes(with_field(path.read_bytes(), "samples/2_epoch_1.json", SIZE, 1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sheet, (problem,) = read(path)
    assert sheet.rows["position"].tolist() == ["1"]
    assert problem == "samples/2_epoch_1.json is damaged (another size or checksum than the archive says)"
    # kilobytes; the member would take 200 MiB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


def test_zstandard(tmp_path):
    """What inspect_ai writes since 2026; checksum and size are held to."""
    path = as_eval(tmp_path, log(plain(1, "C"), plain(2, "I")))
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            archive.writestr(name, pa.Codec("zstd").compress(content, asbytes=True))
    raw = path.read_bytes()
    for name, content in contents.items():
        for field, value in ((METHOD, 93), (CRC, zlib.crc32(content)), (SIZE, len(content))):
            raw = with_field(raw, name, field, value)
    path.write_bytes(raw)
    sheet, problems = read(path)
    assert (sheet.rows["score"].tolist(), problems) == ([1, 0], [])
    for field in (CRC, SIZE):
        path.write_bytes(with_field(raw, "samples/1_epoch_1.json", field, 7))
        sheet, (problem,) = read(path)
        assert sheet.rows["score"].tolist() == [0]
        assert problem == "samples/1_epoch_1.json is damaged (another size or checksum than the archive says)"


def test_ids_with_slashes_and_samples_in_chunks(tmp_path):
    path = as_eval(tmp_path, log(plain("test/7", "C")))
    sheet, problems = read(with_member(path, "samples/8_epoch_1/sample.json", "{}"))
    assert sheet.rows["position"].tolist() == ["test/7"]
    assert problems == ["some samples are in chunks, as in version 3 of these logs, and are not read"]


def test_an_archive_of_something_else(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(LogError, match=r"neither header\.json nor _journal/start\.json"):
        read(path)
