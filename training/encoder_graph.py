"""Write the graphs that index/transformer.py runs: `python -m memoryvault.training.encoder_graph index`.

A graph has three layers and no weights, which the session is given. It needs the package onnx, which the product does
not. The operators of the domain com.microsoft are described in
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto, NodeProto, TensorProto, helper

from memoryvault.index.transformer import GRAPH, HEADS, LAYERS_AT_ONCE, PACKED_GRAPH

EPSILON = 1e-12
OPSET, MICROSOFT, IR_VERSION = 17, "com.microsoft", 9


class _Graph:
    def __init__(self, dimension: int, packed: bool) -> None:
        self.dimension, self.packed = dimension, packed
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def node(
        self, operator: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: object
    ) -> list[str]:
        names = [f"{operator}.{len(self.nodes)}.{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names

    def weight(self, name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> str:
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="given to the session")
        self.weights.append(tensor)
        return name

    def linear(self, x: str, name: str, inputs: int, outputs: int) -> str:
        bias = self.weight(f"{name}.bias", [outputs])
        if self.packed:
            matrix = self.weight(f"{name}.packed", [inputs, outputs], TensorProto.INT8)
            scales = self.weight(f"{name}.scales", [outputs])
            # onnxruntime rounds all rows with one scale. Where a piece has much larger values, others would get lost.
            (most,) = self.node("ReduceMax", self.node("Abs", [x]), axes=[-1], keepdims=1)
            (scaled,) = self.node("Div", [x, most])
            (product,) = self.node("DynamicQuantizeMatMul", [scaled, matrix, scales], domain=MICROSOFT)
            return self.node("Add", [*self.node("Mul", [product, most]), bias])[0]
        (product,) = self.node("MatMul", [x, self.weight(f"{name}.weight", [inputs, outputs])])
        return self.node("Add", [product, bias])[0]

    def added(self, x: str, change: str, name: str) -> str:
        """Add what a part of the layer found, and normalise."""
        weights = [self.weight(f"{name}.{kind}", [self.dimension]) for kind in ("weight", "bias")]
        return self.node("SkipLayerNormalization", [change, x, *weights], domain=MICROSOFT, epsilon=EPSILON)[0]

    def layer(self, x: str, name: str) -> str:
        size = self.dimension
        parts = self.node("Split", [self.linear(x, f"{name}.qkv", size, 3 * size)], 3, axis=-1)
        (context,) = self.node("MultiHeadAttention", [*parts, "", "", "bias"], domain=MICROSOFT, num_heads=HEADS)
        x = self.added(x, self.linear(context, f"{name}.out", size, size), f"{name}.norm")
        (inner,) = self.node("Gelu", [self.linear(x, f"{name}.up", size, 4 * size)], domain=MICROSOFT)
        return self.added(x, self.linear(inner, f"{name}.down", 4 * size, size), f"{name}.last_norm")


def encoder_graph(dimension: int, packed: bool) -> ModelProto:
    """Return the graph of LAYERS_AT_ONCE layers; `packed`: with matrices of 8 bits."""
    graph, x = _Graph(dimension, packed), "x"
    for layer in range(LAYERS_AT_ONCE):
        x = graph.layer(x, str(layer))
    shape = ["texts", "pieces", dimension]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("bias", TensorProto.FLOAT, [None, None, "pieces", "pieces"]),
    ]
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)]
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    made = helper.make_graph(graph.nodes, "layers", inputs, outputs, graph.weights)
    return helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION, producer_name="memoryvault")


def main(folder: str) -> None:
    """Write both graphs into the folder."""
    for path, dimension, packed in ((GRAPH, 384, False), (PACKED_GRAPH, 768, True)):
        (Path(folder) / path.name).write_bytes(encoder_graph(dimension, packed).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
