# quantize.py - makes the peers' int8 models: OpenVINO's by nncf, ONNX Runtime's by its own tools.
# SPDX-License-Identifier: Apache-2.0
#
# Run as a program by formats.py; the models are kept in build/bench.
# usage: quantize.py KIND FROM TO BATCH
import os
import sys
import warnings

import numpy as np

IMAGES = 16  # for calibration; they affect the scales, not the speed


def random_images(batch):
    """Blurred noise, smooth like real images. [batch, 3, 224, 224], normalized."""
    rng = np.random.default_rng(3)
    for _ in range(max(1, IMAGES // batch)):
        coarse = sum(np.repeat(np.repeat(rng.standard_normal((batch, 3, n, n)), 224 // n, 2), 224 // n, 3)
                     for n in (2, 7, 28, 224))
        yield (coarse / 2).astype(np.float32)


def openvino(source, target, batch):
    """nncf with the transformer preset: 8-bit weights per channel, calibrated activations,
    SmoothQuant."""
    import nncf
    import openvino as ov

    model = nncf.quantize(ov.Core().read_model(source), nncf.Dataset(list(random_images(batch))),
                          model_type=nncf.ModelType.TRANSFORMER, subset_size=IMAGES)
    ov.save_model(model, target, compress_to_fp16=False)


def has_vnni():
    with open("/proc/cpuinfo") as f:
        return "vnni" in f.read()


def onnx_options():
    """Quantizes only products with weights; with the others too it is slower. Without VNNI the
    weights have 7 bits, as ONNX Runtime's guide says: its sums of pairs would overflow."""
    from onnxruntime.quantization import QuantType

    return dict(op_types_to_quantize=["MatMul", "Gemm"], per_channel=True, reduce_range=not has_vnni(),
                weight_type=QuantType.QInt8, extra_options={"MatMulConstBOnly": True})


def onnx_dynamic(source, target, batch):
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target, **onnx_options())


def onnx_static(source, target, batch):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = random_images(batch)

        def get_next(self):
            x = next(self.left, None)
            return None if x is None else {"x": x}

    quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    **onnx_options())


KINDS = {"openvino-int8": openvino, "onnxruntime-dynamic": onnx_dynamic, "onnxruntime-static": onnx_static}


def main():
    kind, source, target, batch = sys.argv[1:]
    warnings.simplefilter("ignore")
    try:  # an interrupted run must not leave an incomplete file for the next one
        KINDS[kind](source, target, int(batch))
    except BaseException:
        if os.path.exists(target):
            os.unlink(target)
        raise


if __name__ == "__main__":
    sys.exit(main())
