#!/usr/bin/env python3
"""Makes an archive of an image with one layer, without a container engine.

Usage: image.py OUT.tar NAME:TAG FOLDER [--user USER] [--entrypoint PATH]"""

import argparse
import hashlib
import io
import json
import os
import tarfile


def layer_of(folder):
    """The folder's files as a layer: of root, without times."""

    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for name in sorted(os.listdir(folder)):
            archive.add(os.path.join(folder, name), arcname=name, filter=plain)
    return layer.getvalue()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("--user")
    parser.add_argument("--entrypoint")
    given = parser.parse_args()
    layer = layer_of(given.folder)
    digest = hashlib.sha256(layer).hexdigest()
    settings = {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}
    if given.user:
        settings["User"] = given.user
    if given.entrypoint:
        settings["Entrypoint"] = [given.entrypoint]
    layers = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": settings, "rootfs": layers}).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [given.name], "Layers": [f"{digest}/layer.tar"]}]
    with tarfile.open(given.out, "w") as archive:
        for name, data in [(config_name, config), (f"{digest}/layer.tar", layer), ("manifest.json", json.dumps(manifest).encode())]:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
