"""Draws results of `bench/run --json` as an SVG: ms per image of every engine, a group of bars per
model.
Usage: python3 bench/chart.py result.json out.svg [batch] [threads]"""
import json
import sys

TITLES = {"renyi": "renyi", "openvino": "OpenVINO", "onnxruntime": "ONNX Runtime", "pytorch": "PyTorch"}
MODELS = {"vit_tiny_patch16_224": "ViT-Ti", "vit_small_patch16_224": "ViT-S", "vit_base_patch16_224": "ViT-B"}
LEFT, WIDTH, BAR, GAP = 120, 470, 16, 22


def bars(case, y):
    """One group with its own scale: ViT-B takes fourteen times as long as ViT-Ti."""
    ms = {e: case["engines"][e]["ms_median"] for e in TITLES if e in case["engines"]}
    if "openvino-throughput" in case["engines"]:  # the better of its two hints
        ms["openvino"] = min(ms["openvino"], case["engines"]["openvino-throughput"]["ms_median"])
    top = max(ms.values())
    out = [f'<text x="0" y="{y - 6}" font-weight="bold">{MODELS[case["model"]]}</text>']
    for engine, value in ms.items():
        length = WIDTH * value / top
        color = "#d1495b" if engine == "renyi" else "#8d99ae"
        out.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{TITLES[engine]}</text>'
                   f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{color}"/>'
                   f'<text x="{LEFT + length + 6:.1f}" y="{y + 12}">{value:.1f} ms</text>')
        y += BAR + 3
    return out, y + GAP


def main():
    result = json.load(open(sys.argv[1]))
    batch, threads = (int(x) for x in (sys.argv[3:5] or ("1", "2")))
    body, y = [], 50
    for case in result["results"]:
        if (case["batch"], case["threads"]) == (batch, threads):
            lines, y = bars(case, y)
            body += lines
    title = f"ms per image, f32, batch {batch}, {threads} threads (shorter is better)"
    with open(sys.argv[2], "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{y - 6}" font-family="sans-serif" font-size="12">'
                f'<rect width="100%" height="100%" fill="#ffffff"/><g transform="translate(14,0)" fill="#2b2d42">'
                f'<text x="0" y="20" font-size="14">{title}</text>' + "".join(body) + "</g></svg>\n")


main()
