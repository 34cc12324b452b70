"""The runtime from Python: what goes in, what comes out, and what is said when it does not fit."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as torch_map

from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc
from executorch.exir import to_edge
from executorch.extension.pybindings import portable_lib
from executorch.runtime import Module, Runtime, Verification


class Affine(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2 + y, x - y


class Typed(nn.Module):
    def forward(self, x: torch.Tensor, n: int, flag: bool, scale: float):
        return x * scale, n, flag, None


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total.clone()


def program_of(module: nn.Module, args: tuple, dynamic_shapes=None) -> bytes:
    with torch.no_grad():
        exported = torch.export.export(module.eval(), args, dynamic_shapes=dynamic_shapes)
        return bytes(to_edge(exported).to_executorch().buffer)


@pytest.fixture(scope="module")
def affine() -> bytes:
    rows = torch.export.Dim("rows", max=6)
    example = (torch.zeros(4, 3), torch.zeros(4, 3))
    return program_of(Affine(), example, ({0: rows}, {0: rows}))


def load(program: bytes) -> portable_lib.ExecuTorchMethod:
    return portable_lib._load_program_from_buffer(program).load_method("forward")


X = torch.arange(12.0).reshape(4, 3)
Y = torch.ones(4, 3)
UNREADABLE = r"input 1 \(y\): cannot read the memory of a Tensor.*"


@pytest.mark.parametrize(
    "given",
    [
        X,
        X.numpy(),
        X.t().contiguous().t(),
        X.flip(0).numpy()[::-1],
        torch.stack((X, Y), dim=-1)[..., 0],
        X.clone().requires_grad_(),
        memoryview(X.numpy()),
    ],
    ids=["torch", "numpy", "transposed", "reversed", "strided", "requires_grad", "buffer"],
)
def test_any_array_is_an_input(affine: bytes, given) -> None:
    total, difference = load(affine).call([given, Y])
    assert torch.equal(total, X * 2 + Y) and torch.equal(difference, X - Y)


def test_a_read_only_array_is_an_input(affine: bytes) -> None:
    frozen = X.numpy().copy()
    frozen.flags.writeable = False
    assert torch.equal(load(affine).call([frozen, Y])[1], X - Y)


def test_an_unaligned_array_is_an_input(affine: bytes) -> None:
    bytes_ = np.frombuffer(b"\0" + X.numpy().tobytes(), dtype=np.uint8)[1:]
    assert torch.equal(load(affine).call([bytes_.view(np.float32).reshape(4, 3), Y])[1], X - Y)


def test_one_value_stands_for_a_sequence_of_one() -> None:
    method = load(program_of(Image(), (torch.zeros(1, 2, 3, 3),)))
    x = torch.randn(1, 2, 3, 3)
    assert torch.equal(method(x)[0], method([x])[0])


def test_memory_layout_is_converted_to_what_the_method_takes() -> None:
    x = torch.randn(1, 2, 4, 5)
    last = x.to(memory_format=torch.channels_last)
    for example, given in ((x, last), (last, x), (last, last)):
        image = Image()
        (found,) = load(program_of(image, (example,))).call([given])
        torch.testing.assert_close(found, image(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.bool, torch.uint8, torch.int8, torch.int16,
     torch.int32, torch.int64, torch.float64],
    ids=str,
)  # fmt: skip
def test_every_dtype_passes_both_ways(dtype: torch.dtype) -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat((x, x))

    x = torch.tensor([[0, 1, 3]]).to(dtype)
    (found,) = load(program_of(Twice(), (x,))).call([x])
    assert found.dtype == dtype and torch.equal(found, torch.cat((x, x)))


def test_numbers_go_in_and_come_out_as_python_numbers() -> None:
    method = load(program_of(Typed(), (torch.ones(2), 3, True, 1.5)))
    for n, scale in ((3, 1.5), (np.int64(3), np.float32(1.5)), (torch.tensor(3), 1.5)):
        scaled, count, flag, nothing = method.call([torch.ones(2), n, True, scale])
        assert torch.equal(scaled, torch.full((2,), 1.5))
        assert (count, flag, nothing) == (3, True, None) and type(count) is int


def test_outputs_are_copies_unless_asked_otherwise() -> None:
    method = load(program_of(Sum(), (torch.zeros(2),)))
    (first,) = method.call([torch.ones(2)])
    (alias,) = method.call([torch.ones(2)], clone_outputs=False)
    assert first.tolist() == [1, 1] and alias.tolist() == [2, 2]
    method.call([torch.ones(2)])
    assert first.tolist() == [1, 1] and alias.tolist() == [3, 3]
    del method
    assert alias.tolist() == [3, 3]


def test_methods_keep_their_state_apart_and_modules_their_own() -> None:
    data = program_of(Sum(), (torch.zeros(2),))
    program = portable_lib._load_program_from_buffer(data)
    a, b = program.load_method("forward"), program.load_method("forward")
    a.call([torch.ones(2)])
    assert b.call([torch.ones(2)])[0].tolist() == [1, 1]
    module = portable_lib._load_for_executorch_from_buffer(data)
    module.forward([torch.ones(2)])
    assert module.run_method("forward", [torch.ones(2)])[0].tolist() == [2, 2]
    assert module.plan_execute("forward")[0].tolist() == [3, 3]
    assert module.method_names() == ["forward"] and not module.has_etdump()


class Store(nn.Module):
    def __init__(self, memory: nn.Module, write: bool) -> None:
        super().__init__()
        self.memory = memory
        self.write = write

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.write:
            return self.memory.total.copy_(x).clone()
        return self.memory.total.add_(x).clone()


def with_shared_state(methods: dict[str, nn.Module]) -> bytes:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    example = (torch.zeros(2),)
    programs = {name: torch.export.export(m, example) for name, m in methods.items()}
    planning = MemoryPlanningPass(share_mutable_buffers=True)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    return bytes(to_edge(programs).to_executorch(config).buffer)


def test_methods_planned_to_share_state_share_it() -> None:
    memory = Sum()
    data = with_shared_state({"put": Store(memory, True), "add": Store(memory, False)})
    module = portable_lib._load_for_executorch_from_buffer(data)
    module.run_method("put", [torch.tensor([5.0, 6.0])])
    assert module.run_method("add", [torch.ones(2)])[0].tolist() == [6, 7]


def test_methods_loaded_one_by_one_share_state_that_loading_does_not_reset() -> None:
    class Other(nn.Module):
        """A buffer of its own beside the shared one, both with values to begin with."""

        def __init__(self, memory: nn.Module) -> None:
            super().__init__()
            self.memory = memory
            self.register_buffer("own", torch.tensor([100.0, 200.0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.own.add_(x) + self.memory.total.add_(x)

    memory = Sum()
    memory.total.fill_(7.0)
    data = with_shared_state({"add": Store(memory, False), "other": Other(memory)})
    one = torch.ones(2)
    for order in ("add", "other"), ("other", "add"):
        expected = {"add": [8, 8], "other": [110, 210]}
        if order[0] == "other":
            expected = {"other": [109, 209], "add": [9, 9]}
        with Module(data) as model:
            assert {name: model[name](one).tolist() for name in order} == expected
            assert model["add"](one).tolist() == [10, 10]
        program = Runtime.get().load_program(data)
        a, b = (program.load_method(name) for name in order)
        found = {name: m.execute([one])[0].tolist() for name, m in zip(order, (a, b), strict=True)}
        assert found == expected


def test_the_steps_of_a_call_can_be_taken_one_by_one(affine: bytes) -> None:
    method = load(affine)
    with pytest.raises(RuntimeError, match="InvalidArgument|InvalidState"):
        method.execute()
    method.set_inputs([X, Y])
    method.execute()
    assert torch.equal(method.get_outputs()[1], X - Y)


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        ([X], RuntimeError, "takes 2 inputs, got 1"),
        ([X, Y, Y], RuntimeError, "takes 2 inputs, got 3"),
        ([X.int(), Y], RuntimeError, "input 0.*InvalidArgument"),
        ([X, Y[0]], RuntimeError, "input 1"),
        ([torch.zeros(7, 3), torch.zeros(7, 3)], RuntimeError, "input 0"),
        ([torch.zeros(4, 5), Y], RuntimeError, "input 0"),
        ([torch.zeros(4, 2), Y], RuntimeError, "executing forward.*broadcast"),
        ([X, 3], RuntimeError, "input 1"),
        ([X, [Y]], TypeError, r"input 1 \(y\) is a list"),
        ([X, object()], TypeError, r"input 1 \(y\) is a object"),
        ([X, X.to_sparse()], RuntimeError, UNREADABLE + "strided"),
        ([X, X.to("meta")], RuntimeError, UNREADABLE + "meta"),
    ],
)
def test_an_input_that_does_not_fit_is_named(affine: bytes, inputs, kind, message) -> None:
    method = load(affine)
    with pytest.raises(kind, match=f"(?s){message}"):
        method.call(inputs)
    assert torch.equal(method.call([X, Y])[1], X - Y)  # and the method still works


def test_views_that_negate_or_conjugate_their_memory_are_read_as_they_are(affine: bytes) -> None:
    negative = torch.complex(X, Y).conj().imag
    assert negative.is_neg()
    assert torch.equal(load(affine).call([X, negative])[1], X + Y)


def test_the_reason_logged_by_the_runtime_is_in_the_exception(affine: bytes, capfd) -> None:
    with pytest.raises(RuntimeError) as raised:
        load(affine).call([X.double(), Y])
    first, *reasons = str(raised.value).split("\n")
    assert first == "forward: input 0 (x): InvalidArgument (0x12)"
    assert reasons and "Double" in reasons[0] and "Float" in reasons[0]
    assert capfd.readouterr().err == ""


def test_a_missing_file_is_file_not_found(tmp_path: Path, affine: bytes) -> None:
    with pytest.raises(FileNotFoundError, match="nix.pte"):
        portable_lib._load_for_executorch(str(tmp_path / "nix.pte"))
    with pytest.raises(FileNotFoundError, match="nix.ptd"):
        Runtime.get().load_program(affine, data_path=tmp_path / "nix.ptd")
    (tmp_path / "other.ptd").write_bytes(affine)
    with pytest.raises(RuntimeError, match="loading method 'forward' with .*other.ptd: "):
        Runtime.get().load_program(affine, data_path=tmp_path / "other.ptd").load_method("forward")
    with pytest.raises(FileNotFoundError):
        portable_lib._load_program("")


def test_unknown_names_are_refused(affine: bytes) -> None:
    program = portable_lib._load_program_from_buffer(affine)
    with pytest.raises(RuntimeError, match="'backward'"):
        program.load_method("backward")
    with pytest.raises(RuntimeError, match="'backward'"):
        program.method_meta("backward")
    with pytest.raises(RuntimeError, match="method 3"):
        program.get_method_name(3)
    with pytest.raises(KeyError, match="backward"):
        Runtime.get().load_program(affine).load_method("backward")
    with pytest.raises(RuntimeError, match="backward"):
        portable_lib._load_for_executorch_from_buffer(affine).run_method("backward")


@pytest.mark.parametrize("cut", [0, 3, 60, 0.5, 0.99])
def test_a_damaged_program_is_refused(affine: bytes, cut: float) -> None:
    size = int(cut * len(affine)) if isinstance(cut, float) else cut
    with pytest.raises(RuntimeError, match="loading"):
        portable_lib._load_for_executorch_from_buffer(affine[:size])


def test_an_operator_without_kernel_is_named(affine: bytes) -> None:
    assert b"aten::sub" in affine
    with pytest.raises(RuntimeError, match=r"(?s)OperatorMissing.*aten::sux"):
        load(affine.replace(b"aten::sub", b"aten::sux"))


def events(path: Path) -> list[tuple[str, list[str]]]:
    """Per block its name and, per event, its name or `=` for a value."""
    dump = deserialize_from_etdump_flatcc(path.read_bytes())
    return [
        (run.name, [e.profile_event.name if e.profile_event else "=" for e in run.events])
        for run in dump.run_data
    ]


LOADED = ("Default", ["Method::init", "Program::load_method"])


def test_a_traced_program_writes_what_it_did(affine: bytes, tmp_path: Path) -> None:
    program = Runtime.get().load_program(affine, enable_etdump=True)
    method = program.load_method("forward")
    dump, buffer = tmp_path / "model.etdp", tmp_path / "model.bin"
    x = torch.ones(2, 3)
    method.execute([x, x])
    program.write_etdump_result_to_file(str(dump), str(buffer))
    (loaded, (name, names)) = events(dump)
    assert loaded == LOADED and name == "Execute"
    assert names[-1] == "Method::execute" and "OPERATOR_CALL" in names and "=" not in names
    assert not buffer.exists()
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        program.write_etdump_result_to_file(str(dump), str(buffer))
    method.execute([x, x])
    with pytest.raises(FileNotFoundError):
        program.write_etdump_result_to_file(str(tmp_path / "none" / "model.etdp"), str(buffer))
    program.write_etdump_result_to_file(str(dump), str(buffer))
    assert [name for name, _ in events(dump)] == ["Execute"]


def test_a_debug_buffer_holds_the_values_of_every_instruction(
    affine: bytes, tmp_path: Path
) -> None:
    module = portable_lib._load_for_executorch_from_buffer(
        affine, enable_etdump=True, debug_buffer_size=4096
    )
    assert module.has_etdump()
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    module.forward([x, y])
    dump, buffer = tmp_path / "model.etdp", tmp_path / "model.bin"
    module.write_etdump_result_to_file(str(dump), str(buffer))
    loaded, (_, names) = events(dump)
    assert loaded == LOADED
    assert names[-3:] == ["Method::execute", "=", "="]
    assert names[-6:-3] == ["=", "native_call_sub.out", "OPERATOR_CALL"]
    run = deserialize_from_etdump_flatcc(dump.read_bytes()).run_data[1]
    output = run.events[-2].debug_event.debug_entry
    assert output.output.bool_val and output.tensor.sizes == [2, 3]
    found = np.frombuffer(buffer.read_bytes(), np.float32, 6, output.tensor.offset)
    assert found.tolist() == (x * 2 + y).flatten().tolist()


def test_a_debug_buffer_that_is_too_small_is_reported(affine: bytes, tmp_path: Path) -> None:
    module = portable_lib._load_for_executorch_from_buffer(
        affine, enable_etdump=True, debug_buffer_size=30
    )
    module.forward([torch.ones(2, 3), torch.ones(2, 3)])
    with pytest.warns(RuntimeWarning, match="not complete .Error::OutOfResources."):
        module.write_etdump_result_to_file(str(tmp_path / "a"), str(tmp_path / "b"))
    assert len(events(tmp_path / "a")) == 2


def test_without_tracing_there_is_no_etdump(affine: bytes, tmp_path: Path) -> None:
    program = Runtime.get().load_program(affine)
    with pytest.raises(RuntimeError, match="enable_etdump=True"):
        program.write_etdump_result_to_file("a", "b")
    traced = portable_lib._load_program_from_buffer(affine, enable_etdump=True)
    traced.load_method("forward")
    with pytest.raises(OSError, match="no/such"):
        traced.write_etdump_result_to_file(str(tmp_path / "no/such"))


@pytest.fixture(scope="module")
def bundle() -> bytes:
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    right, wrong = Affine()(x, y), Affine()(x, y + 1)
    cases = [MethodTestCase((x, y), expected) for expected in (right, wrong, None)]
    program = to_edge(torch.export.export(Affine(), (x, y))).to_executorch()
    bundled = BundledProgram(program, [MethodTestSuite("forward", cases)])
    return serialize_from_bundled_program_to_flatbuffer(bundled)


def test_a_bundle_is_verified_by_test_case(bundle: bytes) -> None:
    loaded = portable_lib._load_bundled_program_from_buffer(bundle)
    found = loaded.verify_result_with_bundled_expected_output("forward", 0)
    assert found[0].tolist() == [[1, 3, 5], [7, 9, 11]]
    for index, message in ((1, "output 0, element 0"), (2, "expects no outputs"), (3, "it has 3")):
        with pytest.raises(RuntimeError, match=message):
            loaded.verify_result_with_bundled_expected_output("forward", index)
    loaded.verify_result_with_bundled_expected_output("forward", 1, rtol=1, atol=1)
    with pytest.raises(RuntimeError, match="backward"):
        loaded.verify_result_with_bundled_expected_output("backward", 0)


def test_a_bundled_program_runs_like_any_other(bundle: bytes, tmp_path: Path) -> None:
    loaded = portable_lib._load_bundled_program_from_buffer(bundle)
    module = portable_lib._load_for_executorch_from_bundled_program(loaded, enable_etdump=True)
    del loaded
    assert module.forward([torch.ones(2, 3), torch.ones(2, 3)])[1].sum() == 0
    module.write_etdump_result_to_file(str(tmp_path / "model.etdp"))
    assert [name for name, _ in events(tmp_path / "model.etdp")] == ["Default", "Execute"]


def test_damaged_bundles_are_refused(affine: bytes, bundle: bytes) -> None:
    for file, message in ((affine, "not a bundled program"), (bundle[:100], "damaged")):
        with pytest.raises(RuntimeError, match=message):
            portable_lib._load_bundled_program_from_buffer(file)


def test_metadata_describes_every_value() -> None:
    meta = (
        Runtime.get()
        .load_program(program_of(Typed(), (torch.ones(2, 3), 3, True, 1.5)))
        .metadata("forward")
    )
    info = meta.input_tensor_meta(0)
    assert (meta.name(), meta.num_inputs(), meta.num_outputs()) == ("forward", 4, 4)
    assert (info.sizes(), info.dtype(), info.nbytes()) == ((2, 3), 6, 24)
    assert repr(info) == "TensorInfo(sizes=[2, 3], dtype=Float, is_memory_planned=True, nbytes=24)"
    assert "'Int', 'Bool', 'Double'" in repr(meta)
    for index in (1, 9):
        with pytest.raises(IndexError, match=f"tensor {index}"):
            meta.input_tensor_meta(index)


def test_metadata_outlives_its_program(affine: bytes) -> None:
    info = (
        portable_lib._load_program_from_buffer(affine).method_meta("forward").input_tensor_meta(0)
    )
    assert info.sizes() == (6, 3)


def test_programs_load_from_every_kind_of_source(affine: bytes, tmp_path: Path) -> None:
    path = tmp_path / "affine.pte"
    path.write_bytes(affine)
    with path.open("rb") as file:
        for source in (affine, bytearray(affine), path, str(path), file):
            program = Runtime.get().load_program(source, verification=Verification.Minimal)
            assert program.method_names == {"forward"}
    with pytest.raises(TypeError, match="got int"):
        Runtime.get().load_program(3)  # type: ignore[arg-type]


def test_threads_take_turns_on_one_method() -> None:
    method = load(program_of(Sum(), (torch.zeros(2),)))
    totals: list[float] = []

    def work() -> None:
        for _ in range(200):
            totals.append(method.call([torch.ones(2)])[0][0].item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == list(range(1, 801))


def test_registries_list_what_is_compiled_in() -> None:
    runtime = Runtime.get()
    assert runtime is Runtime.get()
    assert {"aten::add.out", "aten::_softmax.out"} <= runtime.operator_registry.operator_names
    assert not runtime.backend_registry.is_available("NoSuchBackend")
    assert portable_lib._threadpool_get_thread_count() >= 1


def test_work_of_loops_is_bounded() -> None:
    class Sums(torch.nn.Module):
        def forward(self, xs: torch.Tensor) -> torch.Tensor:
            return torch_map(lambda x: x + 1, xs)

    program = program_of(Sums(), (torch.zeros(50, 4),))
    method = Runtime.get().load_program(program).load_method("forward")
    (found,) = method.execute([torch.zeros(50, 4)])
    assert found.tolist() == torch.ones(50, 4).tolist()
    method.set_max_work(50)
    with pytest.raises(RuntimeError):
        method.execute([torch.zeros(50, 4)])
    method.set_max_work(50000)
    assert method.execute([torch.zeros(50, 4)])[0].tolist() == found.tolist()
    with pytest.raises(TypeError):
        method.set_max_work(-1)
