"""labels.py - keep a collection of samples in little space: without its hidden states.

Labels cost hours, hidden states minutes. `mizzle router collect` adds these to a folder without.

Usage: labels.py pack FOLDER FILE    write the shards of a finished collection into FILE (tar, xz)
       labels.py unpack FILE FOLDER  make a folder of them, into which is collected
"""

import io
import json
import os
import sys
import tarfile


def light(data):
    """Return the bytes of a safetensors file without its tensor "hidden"."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    kept, parts, at = {}, [], 0
    for name, tensor in header.items():
        if name == "hidden":
            continue
        kept[name] = tensor
        if name != "__metadata__":
            first, end = tensor["data_offsets"]
            parts.append(body[first:end])
            tensor["data_offsets"] = [at, at + end - first]
            at += end - first
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def pack(folder, path):
    """Write FOLDER's shards; the same shards give the same bytes."""
    names = sorted(n for n in os.listdir(folder) if n.endswith(".safetensors"))
    with tarfile.open(path + ".new", "w:xz", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                data = light(file.read())
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    os.replace(path + ".new", path)


def unpack(path, folder):
    """Write the shards of FILE that FOLDER does not have."""
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(path, "r:xz") as tar:
        for entry in tar:
            to = os.path.join(folder, os.path.basename(entry.name))
            if entry.isfile() and not os.path.exists(to):
                with open(to + ".new", "wb") as file:
                    file.write(tar.extractfile(entry).read())
                os.replace(to + ".new", to)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
