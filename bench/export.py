# export.py - one weight file, every engine's own format: ONNX and OpenVINO IR, one per batch size.
# SPDX-License-Identifier: Apache-2.0
#
# Run as a program by peers.py, so that torch is never loaded in the process that measures.
import argparse
import os
import sys
import warnings

import torch


def load_timm(arch, weights):
    """The timm model of that name with exactly the tensors of the file: none missing, none left over."""
    import timm
    from safetensors.torch import load_file

    model = timm.create_model(arch, pretrained=False)
    model.load_state_dict(load_file(weights), strict=True)
    return model.eval()


def write_onnx(model, x, path):
    # The TorchScript exporter needs no package beyond torch; newer torch may only have the other one.
    names = dict(input_names=["x"], output_names=["logits"])
    try:
        torch.onnx.export(model, (x,), path, opset_version=17, dynamo=False, **names)
    except (TypeError, ImportError, AttributeError, NotImplementedError):
        torch.onnx.export(model, (x,), path, dynamo=True, external_data=False, **names)


def write_ir(model, x, path):
    # From torch rather than from ONNX: it keeps attention as one operation, which OpenVINO fuses.
    import openvino as ov

    ir = ov.convert_model(model, example_input=x, input=[tuple(x.shape)])
    ov.save_model(ir, path, compress_to_fp16=False)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("arch")
    p.add_argument("weights")
    p.add_argument("batch", type=int)
    p.add_argument("--onnx", metavar="FILE")
    p.add_argument("--ir", metavar="FILE.xml")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    model = load_timm(a.arch, a.weights)
    x = torch.zeros(a.batch, 3, 224, 224)
    for path, write in ((a.onnx, write_onnx), (a.ir, write_ir)):
        if not path:
            continue
        try:  # a cut run must leave no half file behind that the next one would trust
            with torch.inference_mode(False), torch.no_grad():
                write(model, x, path)
        except BaseException:
            if os.path.exists(path):
                os.unlink(path)
            raise


if __name__ == "__main__":
    sys.exit(main())
