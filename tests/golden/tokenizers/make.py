#!/usr/bin/env python3
"""Makes the tokenizers of this folder and what the reference implementation does with texts.json.

  pip install tokenizers==0.23.3
  python3 tests/golden/tokenizers/make.py

Trains small vocabularies on texts.json with the split patterns of well-known models, writes <name>.json, reads it
back as any user would, and writes the ids of every text into <name>.ids, a line each. With --fuzz N PROGRAM [SEED] it
writes nothing but compares N random texts a tokenizer: PROGRAM FILE reads texts (4 bytes little-endian for the length,
then UTF-8) and prints a line of ids for each.
"""

import json
import os
import random
import struct
import subprocess
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def read_texts():
    with open(os.path.join(HERE, "texts.json"), encoding="utf-8") as file:
        return json.load(file)


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior, invert=invert),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def trained(pre_tokenizer, size, normalizer=None, specials=(), added=()):
    tokenizer = Tokenizer(models.BPE())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(read_texts(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    tokenizer.add_special_tokens(list(specials))
    tokenizer.add_tokens(list(added))
    return tokenizer


def documents():
    gpt2 = trained(pre_tokenizers.ByteLevel(add_prefix_space=False), 900, specials=["<|endoftext|>"])
    out = {"gpt2": json.loads(gpt2.to_str())}
    # As files were written until 2024.
    merges = out["gpt2"]["model"]["merges"]
    out["gpt2"]["model"]["merges"] = [" ".join(merge) for merge in merges]

    prefixed = trained(pre_tokenizers.ByteLevel(add_prefix_space=True), 600,
                       specials=["<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True)],
                       added=[AddedToken("word", single_word=True), AddedToken("  ", normalized=False),
                              AddedToken("[left]", lstrip=True), AddedToken("[right]", rstrip=True),
                              AddedToken("<pad", rstrip=True, lstrip=True, normalized=False), AddedToken("<padding>")])
    out["prefixed"] = json.loads(prefixed.to_str())

    llama3 = trained(split(LLAMA3), 900, specials=["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    start = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", start)])])
    out["llama3"] = json.loads(llama3.to_str())
    # Tokens that merges do not make, as Llama 3 has them.
    out["llama3"]["model"]["merges"] = [
        merge for rank, merge in enumerate(out["llama3"]["model"]["merges"]) if rank % 5 != 4]
    out["llama3"]["model"]["ignore_merges"] = True

    cl100k = trained(split(CL100K, "removed", True), 500, specials=["<|endoftext|>"])
    out["cl100k"] = json.loads(cl100k.to_str())

    qwen2 = trained(split(QWEN2), 900, normalizer=normalizers.NFC(),
                    specials=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                    added=[AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False),
                           AddedToken("<|fim_prefix|>", normalized=False), AddedToken("cafe\u0301"),
                           AddedToken("<|im", normalized=False)])
    out["qwen2"] = json.loads(qwen2.to_str())

    o200k = trained(split(O200K), 700, specials=["<|endoftext|>", "<|endofprompt|>"])
    out["o200k"] = json.loads(o200k.to_str())
    return out


def reference(document):
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.encode_special_tokens = True
    return tokenizer


def ids_of(tokenizer, texts):
    return [each.ids for each in tokenizer.encode_batch(texts, add_special_tokens=False)]


# --- random texts ---------------------------------------------------------------------------------------

RANGES = [(0x20, 0x7E)] * 6 + [(0, 0x20), (0x80, 0x24F), (0x250, 0x36F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x7FF),
          (0x800, 0xDFF), (0xE00, 0x10FF), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x2BFF),
          (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xA640, 0xABFF), (0xAC00, 0xAFFF), (0xF900, 0xFFFF), (0x10000, 0x1FFFF),
          (0x20000, 0x2FFFF), (0x30000, 0x10FFFF), (0x1F300, 0x1FAFF), (0xE000, 0xF8FF)]
WORDS = ["'s", "'T", "'re", "'VE", "'m", "'ll", "'D", "'\u017f", "'", "''", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\r",
         " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\x85", "1", "12", "1234", "\u00b2", "\u0663", "\u2167", "a", "A", "Word", "WORD",
         "caf\u00e9", "cafe\u0301", "\u0301", "\u0323", "\u4e2d", "\ud55c", "\u1112\u1161\u11ab", "\u0915\u094d\u0937", "\u0e01\u0e33",
         "_", "/", "//", "-", "...", "<|endoftext|>", "<|im_start|>", "<|im", "<mask>", " <mask> ", "word", "[left]", "[right]",
         "<pad", "<padding>", "<tool_call>", "</tool_call>", "<|begin_of_text|>", "<|fim_prefix|>", "\u01c5", "\u02b0", "\u00aa"]


def random_text(rng, texts):
    parts = []
    for _ in range(rng.randrange(1, 24)):
        kind = rng.randrange(10)
        if kind < 4:
            parts.append(rng.choice(WORDS))
        elif kind < 8:
            first, last = rng.choice(RANGES)
            parts.append("".join(chr(rng.randint(first, last)) for _ in range(rng.randrange(1, 6))))
        elif kind == 8:
            text = rng.choice(texts)
            start = rng.randrange(len(text) + 1)
            parts.append(text[start:start + rng.randrange(40)])
        else:
            parts.append(rng.choice(WORDS + [chr(rng.choice((97, 0x301, 0x4e2d, 0x41, 0x20)))]) * rng.randrange(1, 40))
    return "".join(c for c in "".join(parts) if not 0xD800 <= ord(c) < 0xE000)


def fuzz(count, program, seed):
    rng = random.Random(seed)
    texts = read_texts()
    for name in documents():
        path = os.path.join(HERE, name + ".json")
        with open(path, encoding="utf-8") as file:
            tokenizer = reference(json.load(file))
        compared = wrong = 0
        while compared < count:
            batch = [random_text(rng, texts) for _ in range(min(20000, count - compared))]
            fed = b"".join(struct.pack("<I", len(data)) + data for data in (text.encode() for text in batch))
            lines = subprocess.run([program, path], input=fed, stdout=subprocess.PIPE, check=True).stdout.splitlines()
            for text, line, wanted in zip(batch, lines, ids_of(tokenizer, batch), strict=True):
                if [int(number) for number in line.split()] != wanted:
                    wrong += 1
                    if wrong <= 5:
                        print(name, ascii(text), line.decode(), wanted, sep="\n  ")
            compared += len(batch)
        print("%s: %d texts, %d differ" % (name, compared, wrong), flush=True)


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--fuzz":
        fuzz(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 1)
        return
    texts = read_texts()
    for name, document in documents().items():
        with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")
        with open(os.path.join(HERE, name + ".ids"), "w", encoding="ascii") as file:
            for ids in ids_of(reference(document), texts):
                file.write(" ".join(map(str, ids)) + "\n")


if __name__ == "__main__":
    main()
