# SPDX-License-Identifier: Apache-2.0
"""A whole round with a server of the model that doubles numbers: use_penstock_burst.py SOCKET."""

import sys

import numpy

import penstock_burst


def main():
    try:
        penstock_burst.Client("/nonexistent")
        sys.exit("somebody listens at /nonexistent")
    except penstock_burst.BurstError as error:
        assert error.code == "not-found" and "/nonexistent" in str(error), error
    with penstock_burst.Client(sys.argv[1], "small") as client:
        assert [info.name for info in client.inputs] == ["values", "places"]
        assert client.inputs[0].shape is None and client.inputs[1].shape == (2,)
        places = numpy.array([40, 2], numpy.int64)
        for count in (10, 1000, 50000):  # The last is more than the first room of an output.
            values = numpy.arange(count, dtype=numpy.float32)
            result = client.run({"values": values, "places": places})
            assert result["twice"].shape == (count,) and (result["twice"] == 2 * values).all()
            assert result["sum"][0] == 42
        for wrong in ({"values": values}, {"values": values.astype(numpy.float64), "places": places}):
            try:
                client.run(wrong)
                sys.exit("wrong inputs were taken")
            except penstock_burst.BurstError as error:
                assert error.code == "invalid", error
        # In place: nothing is copied.
        given, places = client.input((4,), numpy.float32), client.input((2,), numpy.int64)
        twice, total = client.output((4,), numpy.float32), client.output((1,), numpy.int64)
        given.array[:] = [1, 2, 3, 4]
        places.array[:] = [1, 2]
        status, shapes, times = client.execute([given, places], [twice, total], measure=True)
        assert status == "none" and shapes == [((4,), True), ((1,), True)] and times[1] < 10**9
        view = twice.array[1:3]
        del twice
        assert list(view) == [4, 6] and total.array[0] == 3
    try:
        client.execute([], [])
        sys.exit("a closed client executes")
    except penstock_burst.BurstError as error:
        assert error.code == "invalid", error


main()
