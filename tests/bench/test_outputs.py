"""What predict left: everything but the declared arrays is refused, and nothing hangs or follows."""

from __future__ import annotations

import contextlib
import io
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labcoat.bench.outputs import BadOutput, Tampered, checked, collect
from labcoat.errors import InputError
from labcoat.manifest import Output

OUTPUT = Output(name="prediction", dtype=["float64", "int64", "bool"], shape=["rows", 2])
DIMS = {"rows": 3}
GOOD = np.arange(6.0).reshape(3, 2)


def take(folder: Path) -> dict[str, bytes]:
    return collect(folder, [OUTPUT], DIMS)


def saved(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **options)
    return stream.getvalue()


@pytest.mark.parametrize("array", [GOOD, GOOD.astype(int), GOOD > 2, np.asfortranarray(GOOD), GOOD.astype(">f8")])
def test_declared_arrays_are_taken(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "prediction.npy", array)
    found = take(tmp_path)
    assert list(found) == ["prediction.npy"]
    assert np.array_equal(np.load(io.BytesIO(found["prediction.npy"])), array)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (GOOD[:2], "has shape (2, 2); the task asks for (3, 2)"),
        (GOOD.ravel(), "has shape (6,)"),
        (GOOD.astype("float32"), "has dtype float32; the task asks for float64 or int64 or bool"),
        (GOOD.astype("complex128"), "has dtype complex128"),
        (GOOD.astype("U3"), "has dtype str96"),
        (np.zeros((3, 2), "f8,i8"), "is not an array as numpy.save writes it"),
        (GOOD * np.nan, "holds NaN or infinity (6 of 6 values)"),
        (np.where(GOOD == 1, np.inf, GOOD), "holds NaN or infinity (1 of 6 values)"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, array: Any, reason: str) -> None:
    np.save(tmp_path / "prediction.npy", array)
    with pytest.raises(BadOutput) as caught:
        take(tmp_path)
    assert reason in str(caught.value)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os._exit, (99,)

    array = np.array(Bomb(), object)
    np.save(tmp_path / "prediction.npy", array, allow_pickle=True)
    with pytest.raises(BadOutput, match="is not an array as"):
        take(tmp_path)


GOOD_BYTES = saved(GOOD)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"not an array at all",
        GOOD_BYTES[:-1],
        GOOD_BYTES + b"x",
        GOOD_BYTES[:60],
        GOOD_BYTES.replace(b"(3, 2)", b"(-3,2)"),
        GOOD_BYTES.replace(b"'<f8'", b"open("),
        GOOD_BYTES[:10] + b"(" * 118 + GOOD_BYTES[128:],
        b"\x93NUMPY\x01\x00\xff\xff" + b"{" * 9000,
        b"\x93NUMPY\x09\x00" + GOOD_BYTES[8:],
        saved(GOOD, version=(3, 0)),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "prediction.npy").write_bytes(content)
    with pytest.raises(BadOutput):
        take(tmp_path)


HEADER = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }"
PIECES = [
    "'<f8'",
    "'O'",
    "'|S48'",
    "'<q9'",
    "'|M8'",
    "()",
    "[]",
    "[('a', '<f8')]",
    "('<f8', (2,))",
    "None",
    "True",
    "(3, 2)",
    "(3, 2L)",
]
PIECES += [
    "(True, 2)",
    "(10**99, 2)",
    "1e999",
    '"""',
    "(((((",
    "-" * 200 + "1",
    "{}",
    "\\",
    "\x00",
    "(3.0, 2)",
    "(3 2)",
    "(3, 2,)",
    "(03, 2)",
    "'<f8\n'",
]
PIECE = st.sampled_from(PIECES)


@given(
    st.sampled_from(["'<f8'", "'<f8'", "'>f8'", "'|b1'", "'<f4'"]) | PIECE,
    st.sampled_from(["False", "True"]) | PIECE,
    st.sampled_from(["(3, 2)", "(03, 2)", "(3, 02)", "(3, 2,)", "(6)", "(6,)", "()"]) | PIECE,
    st.just(b"") | st.binary(max_size=4),
    st.integers(0, 90),
    st.sampled_from([1, 1, 1, 2]),
)
@settings(max_examples=400)
def test_no_header_raises_anything_else(
    dtype: str, order: str, shape: str, noise: bytes, at: int, version: int
) -> None:
    header = (HEADER % (dtype, order, shape)).encode()
    header = header[:at] + noise + header[at:] + b"\n"
    content = b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 * version, "little") + header + bytes(48)
    with contextlib.suppress(BadOutput):
        clean = checked(content, OUTPUT, DIMS)
        given_array = np.load(io.BytesIO(content), allow_pickle=False)  # what passes is what numpy reads
        assert (np.load(io.BytesIO(clean), allow_pickle=False) == given_array).all()
        assert given_array.shape == (3, 2)


@pytest.mark.parametrize("shape", ["(03, 2)", "(3, 02)", "(3, 2,)", "(6)"])
def test_shapes_that_numpy_refuses_are_refused_here(shape: str) -> None:
    header = (HEADER % ("'<f8'", "False", shape)).encode() + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48)
    with pytest.raises(BadOutput):
        checked(content, OUTPUT, DIMS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_the_scorer_reads_is_written_by_us(order: Literal["C", "F"]) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], order=order))
    clean = checked(stream.getvalue(), OUTPUT, DIMS)
    assert np.load(io.BytesIO(clean)).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_any_true_byte_becomes_one() -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([0, 1, 2, 255], np.uint8).view(bool))
    clean = checked(stream.getvalue(), Output(name="prediction", dtype=["bool"], shape=[4]), {})
    assert np.load(io.BytesIO(clean)).view(np.uint8).tolist() == [0, 1, 1, 1]


def test_missing_and_extra(tmp_path: Path) -> None:
    with pytest.raises(BadOutput, match=r"/out/prediction.npy is missing"):
        take(tmp_path)
    np.save(tmp_path / "prediction.npy", GOOD)
    (tmp_path / "note\n\udcff.txt").write_text("x")
    with pytest.raises(BadOutput, match=r"note\\n\\udcff.txt'; the task asks for prediction.npy and nothing else"):
        take(tmp_path)


def test_a_giant_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "prediction.npy").open("wb") as stream:
        stream.write(GOOD_BYTES)
        stream.truncate(1 << 40)
    with pytest.raises(BadOutput, match=r"has 1099511627776 bytes; at most 304 are possible"):
        take(tmp_path)


def bind_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def test_links_and_special_files(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "out/prediction.npy", tmp_path / "elsewhere.npy"
    path.parent.mkdir()
    np.save(elsewhere, GOOD)
    makers: dict[str, Callable[[], object]] = {
        "symbolic link": lambda: path.symlink_to(elsewhere),
        "2 hard links": lambda: path.hardlink_to(elsewhere),
        "named pipe": lambda: os.mkfifo(path),
        "folder": lambda: path.mkdir(),
        "socket": lambda: bind_socket(path),
    }
    for what, make in makers.items():
        make()
        with pytest.raises(Tampered, match=what):
            take(path.parent)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_the_folder_itself_replaced_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with pytest.raises(Tampered, match="symbolic link"):
        take(tmp_path / "out")


def test_closed_files_and_folders_are_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "prediction.npy", GOOD)
    (tmp_path / "prediction.npy").chmod(0)
    tmp_path.chmod(0)
    assert take(tmp_path)


def test_a_dimension_that_data_py_forgot(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"names no rows; data\.py must write it"):
        collect(tmp_path, [OUTPUT], {})
