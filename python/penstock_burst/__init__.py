# SPDX-License-Identifier: Apache-2.0
"""Executions in another process, by shared memory: a client of `penstock burst serve`.

    import numpy as np
    import penstock_burst

    with penstock_burst.Client("/run/user/1000/penstock.burst", "nanodet") as client:
        outputs = client.run({"input": np.zeros((1, 3, 416, 416), np.float32)})

`run` copies arrays into shared memory and results out of it. Who wants neither fills an `input()` and
reads an `output()` in place, and calls `execute`. A client is used by one thread at a time.

Needs NumPy and libpenstock_burst.so.0 (where the dynamic linker finds it, or at $PENSTOCK_BURST_LIBRARY).
"""

import ctypes
import os
import weakref

import numpy

__all__ = ["BurstError", "Client", "Memory", "TensorInfo"]

_MAX_RANK = 32
_INPUT, _OUTPUT = 1, 2
_TYPES = [numpy.float32, numpy.float16, numpy.float64, numpy.uint8, numpy.int8, numpy.int32, numpy.int64,
          numpy.bool_]
_CODES = {1: "invalid", 2: "busy", 3: "too-long", 4: "late", 5: "gone", 6: "corrupt", 7: "not-found",
          8: "refused", 9: "exhausted", 10: "failed"}
_STATUSES = ["none", "device-unavailable", "general-failure", "output-insufficient-size", "invalid-argument",
             "missed-deadline-transient", "missed-deadline-persistent", "resource-exhausted-transient",
             "resource-exhausted-persistent"]


class BurstError(Exception):
    """`code` is a word: busy, late, gone, ...; or the status that the server answered with."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("poll_window_ns", ctypes.c_uint64),
                ("execution_limit_ns", ctypes.c_uint64)]


class _Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int32),
                ("rank", ctypes.c_uint32), ("minimum", ctypes.c_int64 * _MAX_RANK),
                ("maximum", ctypes.c_int64 * _MAX_RANK)]


class _Argument(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("offset", ctypes.c_uint32), ("length", ctypes.c_uint32),
                ("dimensions", ctypes.POINTER(ctypes.c_uint32)), ("rank", ctypes.c_uint32)]


class _Execution(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("inputs", ctypes.POINTER(_Argument)),
                ("input_count", ctypes.c_size_t), ("outputs", ctypes.POINTER(_Argument)),
                ("output_count", ctypes.c_size_t), ("timeout_ns", ctypes.c_uint64),
                ("measure", ctypes.c_int32), ("allow_direct", ctypes.c_int32)]


class _Outcome(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int32), ("was_direct", ctypes.c_int32),
                ("time_on_device_us", ctypes.c_uint64), ("time_in_driver_us", ctypes.c_uint64)]


def _load():
    library = ctypes.CDLL(os.environ.get("PENSTOCK_BURST_LIBRARY", "libpenstock_burst.so.0"))
    void, size = ctypes.c_void_p, ctypes.c_size_t
    shapes = {
        "version": (ctypes.c_uint32, []),
        "last_error": (ctypes.c_char_p, []),
        "connect": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Options),
                                   ctypes.POINTER(void)]),
        "close": (None, [void]),
        "input_count": (size, [void]),
        "output_count": (size, [void]),
        "input": (ctypes.c_int, [void, size, ctypes.POINTER(_Tensor)]),
        "output": (ctypes.c_int, [void, size, ctypes.POINTER(_Tensor)]),
        "memory_create": (ctypes.c_int, [size, ctypes.c_int, ctypes.POINTER(void)]),
        "memory_data": (void, [void]),
        "memory_destroy": (None, [void]),
        "execute": (ctypes.c_int, [void, ctypes.POINTER(_Execution), ctypes.POINTER(_Outcome)]),
        "output_shape": (ctypes.c_int, [void, size, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32,
                                        ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_int32)]),
    }
    for name, (result, arguments) in shapes.items():
        function = getattr(library, f"penstock_burst_{name}")
        function.restype, function.argtypes = result, arguments
    if library.penstock_burst_version() < 1:
        raise ImportError("libpenstock_burst is of an older version than this module")
    return library


_library = _load()


def _check(code):
    if code:
        message = _library.penstock_burst_last_error().decode("utf-8", "replace")
        raise BurstError(_CODES.get(code, str(code)), message)


class TensorInfo:
    """A model's input or output: `name`, `dtype`, and per dimension (minimum, maximum) in `dims`."""

    def __init__(self, raw):
        self.name = raw.name.decode("utf-8", "replace")
        self.dtype = numpy.dtype(_TYPES[raw.type])
        self.dims = [(raw.minimum[i], raw.maximum[i]) for i in range(raw.rank)]

    @property
    def shape(self):
        """A tuple where every dimension is fixed, else None."""
        if any(low != high for low, high in self.dims):
            return None
        return tuple(low for low, _ in self.dims)


class Memory:
    """Shared memory, seen as an array. It lives as long as this object or a view of `array`."""

    def __init__(self, shape, dtype, use):
        dtype = numpy.dtype(dtype)
        self.nbytes = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        handle = ctypes.c_void_p()
        _check(_library.penstock_burst_memory_create(max(self.nbytes, 1), use, ctypes.byref(handle)))
        self.handle = handle
        address = _library.penstock_burst_memory_data(handle)
        buffer = (ctypes.c_char * max(self.nbytes, 1)).from_address(address)
        # Views of the array hold the buffer, and the memory goes with that.
        weakref.finalize(buffer, _library.penstock_burst_memory_destroy, handle)
        self.array = numpy.frombuffer(buffer, dtype, self.nbytes // dtype.itemsize).reshape(shape)


class Client:
    """One burst: a connection, and one execution at a time."""

    def __init__(self, path, model="", poll_window=0.0, execution_limit=0.0):
        """Times in seconds; `poll_window` at most 0.002."""
        options = _Options(ctypes.sizeof(_Options), int(poll_window * 1e9), int(execution_limit * 1e9))
        self._client = ctypes.c_void_p()
        _check(_library.penstock_burst_connect(os.fsencode(path), model.encode(), ctypes.byref(options),
                                               ctypes.byref(self._client)))
        self._finalizer = weakref.finalize(self, _library.penstock_burst_close, self._client)
        self.inputs = self._describe("input")
        self.outputs = self._describe("output")
        self._memories = {}
        self._room = {}

    def _describe(self, kind):
        infos = []
        for index in range(getattr(_library, f"penstock_burst_{kind}_count")(self._client)):
            raw = _Tensor(ctypes.sizeof(_Tensor))
            _check(getattr(_library, f"penstock_burst_{kind}")(self._client, index, ctypes.byref(raw)))
            infos.append(TensorInfo(raw))
        return infos

    def close(self):
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def input(shape, dtype):
        return Memory(shape, dtype, _INPUT)

    @staticmethod
    def output(shape, dtype):
        return Memory(shape, dtype, _OUTPUT)

    def execute(self, inputs, outputs, timeout=10.0, measure=False, allow_direct=False):
        """Memories in the model's order; None: no value. Returns (status, shapes, times in us or None).

        `shapes` has (dimensions, whether there was room) for each output, or is empty.
        """
        if not self._finalizer.alive:
            raise BurstError("invalid", "the client is closed")
        keep = []

        def arguments(memories, with_shape):
            array = (_Argument * max(len(memories), 1))()
            for argument, memory in zip(array, memories):
                if memory is None:
                    continue
                argument.memory, argument.length = memory.handle.value, memory.nbytes
                if with_shape:
                    dims = (ctypes.c_uint32 * max(memory.array.ndim, 1))(*memory.array.shape)
                    keep.append(dims)
                    argument.dimensions, argument.rank = dims, memory.array.ndim
            return array

        execution = _Execution(ctypes.sizeof(_Execution), arguments(inputs, True), len(inputs),
                               arguments(outputs, False), len(outputs), max(int(timeout * 1e9), 1),
                               int(measure), int(allow_direct))
        outcome = _Outcome(ctypes.sizeof(_Outcome))
        _check(_library.penstock_burst_execute(self._client, ctypes.byref(execution), ctypes.byref(outcome)))
        shapes = []
        if outcome.status in (0, 3):
            for index in range(len(outputs)):
                dims, rank, enough = (ctypes.c_uint32 * _MAX_RANK)(), ctypes.c_uint32(), ctypes.c_int32()
                if _library.penstock_burst_output_shape(self._client, index, dims, _MAX_RANK,
                                                        ctypes.byref(rank), ctypes.byref(enough)):
                    shapes = []
                    break
                shapes.append((tuple(dims[:rank.value]), bool(enough.value)))
        times = (outcome.time_on_device_us, outcome.time_in_driver_us) if measure else None
        return _STATUSES[outcome.status], shapes, times

    def run(self, arrays, timeout=10.0):
        """Arrays by input name -> arrays by output name, copied in and out."""
        wanted = {info.name for info in self.inputs}
        if set(arrays) != wanted:
            raise BurstError("invalid", f"inputs are {sorted(wanted)}, not {sorted(arrays)}")
        inputs = []
        for info in self.inputs:
            array = numpy.asarray(arrays[info.name])
            if array.dtype != info.dtype:
                raise BurstError("invalid", f"input '{info.name}' is {info.dtype}, not {array.dtype}")
            memory = self._memories.get(info.name)
            if memory is None or memory.array.shape != array.shape:
                memory = self._memories[info.name] = self.input(array.shape, array.dtype)
            memory.array[...] = array
            inputs.append(memory)
        # A second time with the room that the first has asked for.
        for _ in range(2):
            outputs = [self._output_room(info) for info in self.outputs]
            status, shapes, _times = self.execute(inputs, outputs, timeout)
            if status != "output-insufficient-size":
                break
            for info, (dims, enough) in zip(self.outputs, shapes):
                if not enough:
                    self._room[info.name] = self.output(dims, info.dtype)
        if status != "none":
            raise BurstError(status, "the server's log says why")
        if len(shapes) != len(outputs):
            raise BurstError("corrupt", "the server tells no shapes of its outputs")
        result = {}
        for info, memory, (dims, _enough) in zip(self.outputs, outputs, shapes):
            count = int(numpy.prod(dims, dtype=numpy.int64))
            result[info.name] = memory.array.reshape(-1)[:count].reshape(dims).copy()
        return result

    def _output_room(self, info):
        if info.name not in self._room:
            self._room[info.name] = self.output(info.shape if info.shape is not None else (16384,), info.dtype)
        return self._room[info.name]
