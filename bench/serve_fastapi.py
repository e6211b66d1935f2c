# serve_fastapi.py - what a user would write instead of renyi serve: FastAPI and ONNX Runtime, with Pillow's resize.
# usage: serve_fastapi.py WEIGHTS ARCHITECTURE THREADS FOLDER
# SPDX-License-Identifier: Apache-2.0
#
# One worker process: ONNX Runtime uses all threads for one image, and requests wait in the event loop's thread pool.
import io
import os
import socket
import subprocess
import sys

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI, File, UploadFile
from PIL import Image

weights, arch, threads, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
onnx_file = os.path.join(folder, f"{arch}.serve.onnx")
if not os.path.exists(onnx_file):
    here = os.path.dirname(os.path.abspath(__file__))
    code = f"""
import sys; sys.path.insert(0, {here!r})
import torch; from export import load_timm
torch.onnx.export(load_timm({arch!r}, {weights!r}), torch.zeros(1, 3, 224, 224), {onnx_file!r}, input_names=["x"], output_names=["y"], dynamo=False)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(onnx_file, settings, providers=["CPUExecutionProvider"])
app = FastAPI()


@app.post("/v1/classify")
def classify(image: UploadFile = File()):
    photo = Image.open(io.BytesIO(image.file.read())).convert("RGB").resize((249, 249), Image.BICUBIC).crop((12, 12, 236, 236))
    x = (np.asarray(photo, dtype=np.float32) / 255 - 0.5) / 0.5
    y = session.run(None, {"x": x.transpose(2, 0, 1)[None]})[0][0]
    p = np.exp(y - y.max())
    p /= p.sum()
    top = np.argsort(-p)[:5]
    return {"data": [{"top": [{"index": int(i), "probability": float(p[i])} for i in top]}]}


listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
