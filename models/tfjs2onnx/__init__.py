# SPDX-License-Identifier: Apache-2.0
"""TensorFlow.js graph models to ONNX, without TensorFlow.

    model = load_graph_model(topology_bytes, weight_bytes_by_path)
    onnx_model = convert(model, outputs={"scores": "Identity:0"}, dynamic_batch=True)

Modules: graph_model reads TFJS files; value and emitter hold the conversion's state; ops has one
handler an operation; convert ties them together; reference evaluates a TFJS graph in numpy, knowing
nothing of ONNX, to check the result against.
"""
