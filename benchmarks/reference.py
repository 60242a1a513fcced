#!/usr/bin/env python3
"""Does work of lanepack-bench with packages of others, for `lanepack-bench --references`.

  reference.py tokenizers TOKENIZER.json TEXT
      ids of a text's documents, by the package tokenizers
  reference.py blending PARTS POSITIONS
      which part and which of its records is at each position of a mixture, by megatron-core

Answers "ready PACKAGE VERSION", or why it cannot. Then, for every line of standard input, does the work once and
answers "CHECKSUM WALL CPU": seconds that passed, and seconds of processor time.
"""

import glob
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

BITS = 0xFFFFFFFFFFFFFFFF


class Missing(Exception):
    pass


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise Missing("the package %s is not installed: no reference" % package) from error


def documents(path):
    """The text in documents of whole lines, each of 4096 bytes or more but the last, as lanepack-bench cuts it."""
    with open(path, "rb") as file:
        data = file.read()
    first = 0
    while first < len(data):
        line = data.find(b"\n", min(first + 4095, len(data) - 1))
        last = len(data) if line < 0 else line + 1
        yield data[first:last].decode()
        first = last


def tokenizers_work(tokenizer_path, text_path):
    version = version_of("tokenizers")
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_path)
    tokenizer.encode_special_tokens = True
    texts = list(documents(text_path))
    # Without offsets where the package can do without them: less work for it.
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)

    def checksum(encodings):
        total = 0
        for encoding in encodings:
            for number in encoding.ids:
                total = ((total ^ number) * 0x9E3779B97F4A7C15) & BITS
        return total

    return "tokenizers " + version, lambda: encode(texts, add_special_tokens=False), checksum


def blending_work(parts, positions):
    version = version_of("megatron-core")
    import numpy

    # The helpers alone: the package around them wants PyTorch.
    files = []
    for folder in importlib.util.find_spec("megatron").submodule_search_locations:
        files += glob.glob(os.path.join(folder, "core", "datasets", "helpers_cpp*.so"))
    if not files:
        raise Missing("megatron-core has no compiled helpers: no reference")
    loader = importlib.machinery.ExtensionFileLoader("helpers_cpp", files[0])
    helpers = importlib.util.module_from_spec(importlib.util.spec_from_loader("helpers_cpp", loader))
    loader.exec_module(helpers)
    parts = int(parts)
    positions = int(positions)
    weights = numpy.array([1 + i * 7 % 997 for i in range(parts)], dtype=numpy.float64)
    weights /= weights.sum()
    part_of = numpy.zeros(positions, dtype=numpy.int16)
    index_of = numpy.zeros(positions, dtype=numpy.int64)

    def work():
        helpers.build_blending_indices(part_of, index_of, weights, parts, positions, False)
        return part_of, index_of

    def checksum(found):
        part, index = found
        return int((part.astype(numpy.uint64) * numpy.uint64(31) + index.astype(numpy.uint64)).sum())

    return "megatron-core " + version, work, checksum


def main():
    kinds = {"tokenizers": (tokenizers_work, 2), "blending": (blending_work, 2)}
    if len(sys.argv) < 2 or sys.argv[1] not in kinds or len(sys.argv) - 2 != kinds[sys.argv[1]][1]:
        sys.exit(__doc__)
    try:
        name, work, checksum = kinds[sys.argv[1]][0](*sys.argv[2:])
    except Missing as error:
        print(error, flush=True)
        return
    except Exception as error:  # whatever a package of others may come up with
        print("reference.py %s: %s" % (sys.argv[1], str(error).replace("\n", " ")), flush=True)
        return
    print("ready", name, flush=True)
    for _ in sys.stdin:
        wall = time.perf_counter()
        cpu = time.process_time()
        found = work()
        cpu = time.process_time() - cpu
        wall = time.perf_counter() - wall
        print(checksum(found), "%.9f" % wall, "%.9f" % cpu, flush=True)


if __name__ == "__main__":
    main()
