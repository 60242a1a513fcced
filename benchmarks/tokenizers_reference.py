#!/usr/bin/env python3
"""Measures the package `tokenizers` on the files that lanepack-bench measures lanepack on.

  python3 benchmarks/tokenizers_reference.py tokenizer.json text [REPETITIONS]
  lanepack-bench --clock cpu --filter tokenizer --tokenizer tokenizer.json --text text

Prints bytes a second of processor time on one thread, the median of the repetitions, and a checksum of the ids that
lanepack-bench prints too. The text is cut into documents of whole lines, each of 4096 bytes or more but the last.
"""

import os
import statistics
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tokenizers
except ImportError:
    print("skipped: the package tokenizers is not installed")
    sys.exit(0)


def documents(path):
    with open(path, "rb") as file:
        data = file.read()
    first = 0
    while first < len(data):
        line = data.find(b"\n", min(first + 4095, len(data) - 1))
        last = len(data) if line < 0 else line + 1
        yield data[first:last].decode()
        first = last


def checksum(encodings):
    total = 0
    for encoding in encodings:
        for number in encoding.ids:
            total = ((total ^ number) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    return total


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
    tokenizer.encode_special_tokens = True
    texts = list(documents(sys.argv[2]))
    size = os.path.getsize(sys.argv[2])
    # Without offsets where the package can do without them: less work for it.
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    print("checksum", checksum(encode(texts, add_special_tokens=False)))
    seconds = []
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        start = time.process_time()
        encode(texts, add_special_tokens=False)
        seconds.append(time.process_time() - start)
    print("tokenizers %s: %.2f MB/s" % (tokenizers.__version__, size / statistics.median(seconds) / 1e6))


if __name__ == "__main__":
    main()
