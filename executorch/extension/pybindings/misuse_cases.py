"""What a user of the bindings may get wrong, each case in a function that must raise.

    python -m executorch.extension.pybindings.misuse_cases FOLDER [FIRST]

runs the cases from number FIRST on, and prints for each its name before it and what it raised after
it: what is missing there ended the process. FOLDER holds programs of misuse_test.py.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from executorch.extension.pybindings import portable_lib
from executorch.runtime import Runtime

X = np.ones((4, 3), np.float32)
HUGE = 2**62
Cases = dict[str, Callable[[], Any]]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [
        ("tensor", DLTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
KEPT: list[Any] = []


class Liar:
    """A producer whose capsule says what it is told, over memory of X's size."""

    def __init__(self, shape=(4, 3), strides=None, **fields: int) -> None:
        memory = (ctypes.c_float * 12)()
        rank = len(shape)
        managed = DLManagedTensor()
        t = managed.tensor
        t.data, t.device_type, t.ndim = ctypes.addressof(memory), 1, rank
        t.code, t.bits, t.lanes = 2, 32, 1
        sizes = (ctypes.c_int64 * max(rank, 1))(*shape)
        t.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            steps = (ctypes.c_int64 * max(rank, 1))(*strides)
            t.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
            KEPT.append(steps)
        for name, value in fields.items():
            setattr(t, name, value)
        self.managed = managed
        KEPT.extend((memory, sizes, managed))

    def __dlpack__(self, **_: Any) -> Any:
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __dlpack__(self, **_: Any) -> Any:
        raise self.error


class Endless:
    """Whose item has an item, and so on."""

    def item(self) -> Endless:
        return Endless()


class Lengthy:
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        raise IndexError(i)


def folder() -> Path:
    return Path(sys.argv[1])


def program(name: str = "affine") -> bytes:
    return (folder() / f"{name}.pte").read_bytes()


def load(name: str = "affine") -> portable_lib.ExecuTorchMethod:
    return portable_lib._load_program_from_buffer(program(name)).load_method("forward")


def call(*inputs: Any, name: str = "affine") -> Callable[[], Any]:
    """Calls a method of two tensors; it must still work afterwards."""

    def run() -> None:
        method = load(name)
        try:
            method.call(list(inputs))
        finally:
            assert np.array_equal(method.call([X, X])[0], 3 * X)

    return run


def arrays() -> Cases:
    strided = np.lib.stride_tricks.as_strided
    cases: dict[str, Any] = {
        "rank 17": X.reshape((4, 3) + (1,) * 15),
        "rank 32": X.reshape((4, 3) + (1,) * 30),
        "rank 0": np.float32(1) * np.ones((), np.float32),
        "other rank": X[0],
        "too large": np.ones((7, 3), np.float32),
        "huge without memory": np.broadcast_to(np.float32(1), (2**30, 2**30)),
        "huge stride": np.broadcast_to(np.float32(1), (2, 2**16, 2**16)),
        "huge dimension": strided(X, (2**40, 3), (0, 0)),
        "no elements": np.empty((0, 5), np.float32),
        "no elements, huge": strided(X, (0, 2**31, 2**20), (0, 0, 0)),
        "float64": X.astype(np.float64),
        "strings": np.array([["a"] * 3] * 4),
        "objects": np.array([[None] * 3] * 4, dtype=object),
        "dates": X.astype("datetime64[s]"),
        "records": np.zeros((4, 3), [("a", "f4")]),
        "big endian": X.astype(">f4"),
        "long double": X.astype(np.longdouble),
        "bytes": b"\0" * 48,
        "bytearray": bytearray(47),
        "view of bytes": memoryview(bytearray(48)),
        "released view": released_view(),
        "nested list": X.tolist(),
        "list of arrays": [X],
        "dict": {"x": X},
        "set": {1},
        "number": 3,
        "huge number": 10**30,
        "text": "x\0y",
        "surrogate": "\ud800",
        "None": None,
        "type": np.ndarray,
        "item of item": Endless(),
        "file": sys.stdout,
    }
    return {name: call(value, X) for name, value in cases.items()}


def released_view() -> memoryview:
    view = memoryview(bytearray(48))
    view.release()
    return view


def liars() -> Cases:
    cases = {
        "no memory": Liar(data=0),
        "no memory, no elements": Liar((0, 5), data=0),
        "negative size": Liar((-4, 3)),
        "negative sizes": Liar((-4, -3)),
        "least size": Liar((-(2**63), 3)),
        "huge size": Liar((HUGE, HUGE)),
        "size beyond 32 bits": Liar((2**32 + 4, 3)),
        "huge stride": Liar(strides=(HUGE, 1)),
        "huge negative stride": Liar(strides=(-HUGE, 1)),
        "least stride": Liar(strides=(-(2**63), 1)),
        "rank 2**31 - 1": Liar(ndim=2**31 - 1),
        "rank -1": Liar(ndim=-1),
        "rank 17": Liar((1,) * 17),
        "on a GPU": Liar(device_type=2),
        "on no device": Liar(device_type=77),
        "no dtype": Liar(code=0, bits=0),
        "dtype of a bit": Liar(code=6, bits=1),
        "dtype of 255 bits": Liar(code=2, bits=255),
        "vectors": Liar(lanes=4),
        "opaque handles": Liar(code=3, bits=64),
        "raises": Raises(ValueError("no")),
        "raises KeyboardInterrupt": Raises(KeyboardInterrupt()),
        "raises SystemExit": Raises(SystemExit(3)),
        "recursion": Raises(RecursionError()),
    }
    return {f"liar: {name}": call(liar, X) for name, liar in cases.items()}


def sequences() -> Cases:
    def items(value: Any) -> Callable[[], Any]:
        return lambda: load().call(value)

    return {
        "huge length": items(Lengthy(2**62)),
        "long length": items(Lengthy(10**9)),
        "wrong length": items(Lengthy(2)),
        "range": items(range(10**9)),
        "None for all": items(None),
        "text for all": items("x" * 100),
        "generator": items(X for _ in range(2)),
        "no inputs": items(()),
        "many inputs": items([X] * 100000),
        "clone_outputs": lambda: load().call([X, X], clone_outputs=object()),
        "keyword": lambda: load().call([X, X], nonsense=1),
    }


def objects() -> Cases:
    method, module = portable_lib.ExecuTorchMethod, portable_lib.ExecuTorchModule
    whole = portable_lib.ExecuTorchProgram

    def meta() -> Any:
        return load().method_meta()

    return {
        "made from nothing": lambda: method(),
        "not initialised": lambda: method.__new__(method).call([X, X]),
        "not initialised module": lambda: module.__new__(module).forward([X, X]),
        "not initialised program": lambda: whole.__new__(whole).num_methods(),
        "other self": lambda: method.call(5, [X, X]),
        "None as self": lambda: method.execute(None),
        "run before inputs": lambda: load().execute(),
        "step before inputs": lambda: [load()._step() for _ in range(100)],
        "index of a method": lambda: portable_lib._load_program_from_buffer(
            program()
        ).get_method_name(10**6),
        "negative index": lambda: meta().input_tensor_meta(-1),
        "index of an input": lambda: meta().input_tensor_meta(2**63),
        "index of an output": lambda: meta().output_tensor_meta(7),
        "index of an attribute": lambda: meta().attribute_tensor_meta(0),
        "value": lambda: load()._value(10**9),
        "attribute": lambda: load().get_attribute("x\0y"),
        "method": lambda: portable_lib._load_program_from_buffer(program()).load_method("\0"),
        "other method": lambda: portable_lib._load_program_from_buffer(program()).method_meta(""),
        "threads": lambda: portable_lib._unsafe_reset_threadpool(-1),
        "bundle": lambda: portable_lib._load_bundled_program_from_buffer(program()),
        "no etdump": lambda: portable_lib._load_program_from_buffer(
            program()
        ).write_etdump_result_to_file("x"),
        "huge debug buffer": lambda: portable_lib._load_program_from_buffer(
            program(), enable_etdump=True, debug_buffer_size=HUGE
        ),
    }


def files() -> Cases:
    load_path, runtime = portable_lib._load_program, Runtime.get()

    def fifo() -> Any:
        path = folder() / "fifo"
        if not path.exists():
            os.mkfifo(path)
        return load_path(str(path))

    def sparse() -> Any:
        path = folder() / "sparse"
        with path.open("wb") as file:
            file.truncate(2**40)
        return load_path(str(path))

    def empty() -> Any:
        (folder() / "empty").touch()
        return load_path(str(folder() / "empty"))

    def traced(path: str) -> Callable[[], Any]:
        def write() -> None:
            loaded = portable_lib._load_program_from_buffer(program(), enable_etdump=True)
            loaded.load_method("forward").call([X, X])
            loaded.write_etdump_result_to_file(path)

        return write

    return {
        "fifo": fifo,
        "sparse": sparse,
        "empty": empty,
        "folder": lambda: load_path(str(folder())),
        "zeros": lambda: load_path("/dev/zero"),
        "full": lambda: load_path("/dev/full"),
        "null in a path": lambda: load_path(str(folder() / "affine.pte") + "\0.pte"),
        "surrogate in a path": lambda: load_path("\udcff"),
        "path of bytes": lambda: load_path(os.fsencode(folder() / "affine.pte")),
        "no path": lambda: load_path(None),
        "long path": lambda: load_path("x" * 10**6),
        "number": lambda: runtime.load_program(7),
        "text file": lambda: runtime.load_program((folder() / "text").open()),
        "str as bytes": lambda: portable_lib._load_program_from_buffer("x" * 100),
        "memoryview": lambda: portable_lib._load_program_from_buffer(memoryview(program())),
        "no bytes": lambda: runtime.load_program(b""),
        "data is a folder": lambda: runtime.load_program(program(), data_path=folder()).load_method(
            "forward"
        ),
        "data is a program": lambda: runtime.load_program(
            program(), data_path=folder() / "affine.pte"
        ).load_method("forward"),
        "dump to a folder": traced(str(folder())),
        "dump to a full disk": traced("/dev/full"),
        "dump to a null": traced(str(folder() / "x\0y")),
    }


class Fine(Exception):
    """What an allowed case raises when it went well."""


def checked(f: Callable[[], bool]) -> Callable[[], None]:
    def run() -> None:
        assert f()
        raise Fine

    return run


def booleans() -> bool:
    x = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    expected = np.array([0, 1, 1, 1], np.uint8)
    method = load("logical")
    outputs = [*method.call([x]), *method.call([x], clone_outputs=False)]
    found = [np.asarray(y).view(np.uint8) for y in (outputs[0], outputs[2])]
    return all(np.array_equal(y, expected) for y in found)


def handed_on() -> bool:
    """An output that is an input, whose owner is gone."""
    method = load("handed_on")
    x = np.full((256, 256), 7, np.float32)
    (y,) = method.call([x], clone_outputs=False)
    method.call([np.zeros((256, 256), np.float32)])
    del x, method
    np.zeros((256, 256), np.float32)[:] = 1
    return bool((y == 7).all())


def both(a: float, b: float) -> list[np.ndarray]:
    return [np.full((256, 256), value, np.float32) for value in (a, b)]


def refused_midway() -> bool:
    """The first input is another already, and its owner is gone."""
    method = load("both")
    method.call(both(1, 2))
    try:
        method.set_inputs([both(3, 0)[0], np.zeros((9, 9), np.float32)])
    except RuntimeError:
        np.zeros((256, 256), np.float32)[:] = 9
        x, y, view = method.get_outputs()
        return bool((x == 3).all() and (y == 2).all() and (view == 1).all())
    return False


def not_run_yet() -> bool:
    """Views of the inputs of the last run, which others have replaced."""
    method = load("viewed")
    method.call(both(1, 2))
    method.set_inputs(both(3, 4))
    np.zeros((256, 256), np.float32)[:] = 9
    x, y, view = method.get_outputs()
    results = (x == 3).all() and (y == 4).all() and (view == 1).all()
    method.execute()
    return bool(results and (method.get_outputs()[2] == 3).all())


def kept_results() -> bool:
    """Results over memory that the bindings lent, after calls that took other memory."""
    method = load("both")
    results = [method.call(both(i, -i), clone_outputs=False) for i in range(5)]
    del method
    return all(bool((x == i).all() and (y == -i).all()) for i, (x, y, _) in enumerate(results))


def constant() -> bool:
    """Memory that is mapped for reading only."""
    method = portable_lib._load_program(str(folder() / "constant.pte")).load_method("forward")
    outputs = method.call([np.ones(3, np.float32)], clone_outputs=False)
    for y in outputs:
        y[:] = 5
    return np.array_equal(method.call([np.ones(3, np.float32)])[1], np.arange(3))


def threads() -> bool:
    method, errors = load(), []

    def work() -> None:
        try:
            for i in range(50):
                method.call([X * i, X])
                method.set_inputs([X, X])
                method.get_outputs()
                method._value(i % 3)
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    return not errors


def bundle_in_threads() -> bool:
    bundle = portable_lib._load_bundled_program_from_buffer((folder() / "bundle.bpte").read_bytes())
    results: list[Any] = []

    def work() -> None:
        results.append(bundle.verify_result_with_bundled_expected_output("forward", 0)[0].sum())

    workers = [threading.Thread(target=work) for _ in range(8)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    return len(results) == 8


def run_in_a_warning() -> bool:
    """A dump that does not hold all values warns; who is told may use the method."""
    import warnings

    loaded = portable_lib._load_program_from_buffer(
        program(), enable_etdump=True, debug_buffer_size=16
    )
    method = loaded.load_method("forward")
    method.call([X, X])
    told = []

    def show(*_: Any, **__: Any) -> None:
        told.append(method.call([X, X])[0])

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        loaded.write_etdump_result_to_file(str(folder() / "dump"), str(folder() / "values"))
    return len(told) == 1


def threads_reset() -> bool:
    portable_lib._unsafe_reset_threadpool(0)
    good = np.array_equal(load().call([X, X])[0], 3 * X)
    portable_lib._unsafe_reset_threadpool(2)
    return good and portable_lib._threadpool_get_thread_count() == 2


def fine() -> Cases:
    """What is allowed, though unusual: raises Fine when it went well."""
    cases = (
        booleans,
        handed_on,
        refused_midway,
        not_run_yet,
        kept_results,
        constant,
        threads,
        bundle_in_threads,
        run_in_a_warning,
        threads_reset,
    )
    return {f"fine: {f.__name__}": checked(f) for f in cases}


def all_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    for group in (arrays, liars, sequences, objects, files, fine):
        yield from group().items()


def main() -> None:
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for name, run in list(all_cases())[first:]:
        print(f"{name} -> ", end="", flush=True)
        try:
            run()
            print("nothing", flush=True)
        except BaseException as error:
            text = str(error).split("\n")[0].encode("ascii", "backslashreplace").decode()
            print(f"{type(error).__name__}: {text}", flush=True)


if __name__ == "__main__":
    main()
