"""Small safetensors files, for the scripts of tests: standard library only."""

import json
import struct
from array import array


def read(path):
    """Name -> (shape, values) of a file of f64, f32 and i64 tensors."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            code = {"F64": "d", "F32": "f", "I64": "q"}[entry["dtype"]]
            tensors[name] = entry["shape"], array(code, data[begin:end])
    return tensors


def write_integers(path, tensors):
    """Writes name -> (shape, values) as i64 tensors."""
    header, blob = {}, b""
    for name, (shape, values) in sorted(tensors.items()):
        data = array("q", values).tobytes()
        offsets = [len(blob), len(blob) + len(data)]
        header[name] = {"dtype": "I64", "shape": shape, "data_offsets": offsets}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)
