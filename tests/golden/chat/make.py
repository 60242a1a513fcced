#!/usr/bin/env python3
"""Makes expected.json: what the chat templates of model families make of the conversations below.

  pip install jinja2 tokenizers==0.23.3
  python3 tests/golden/chat/make.py FOLDER

FOLDER has the templates as their models publish them (`chat_template` of tokenizer_config.json): chatml.jinja (the
plain loop), qwen2.jinja, qwen2.5.jinja, llama3.jinja and llama3.1.jinja. They are rendered as the package transformers
does; ids are those of the package tokenizers with the tokenizers of ../tokenizers, to which missing special tokens are
added at the end. The loss mask is found by rendering prefixes of a conversation with a generation prompt.
"""

import json
import os
import sys

import jinja2
import jinja2.sandbox
from tokenizers import AddedToken, Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIALS = {"qwen2": ["<|im_start|>", "<|im_end|>"],
            "llama3": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]}
QWEN25 = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
LLAMA31 = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

WEATHER = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": [1, 2]}}}
CLOCK = {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": {}}}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CONVERSATIONS = {
    "one turn": [say("user", "What is 2 + 2?"), say("assistant", "It's 4.")],
    "with a system message": [say("system", "Answer briefly."), say("user", "Why?\n"), say("assistant", "Because.")],
    "two turns": [say("user", "Hello there"), say("assistant", "Hi!"), say("user", "And now?\n\nMore."),
                  say("assistant", "1. one\n2. two\n")],
    "scripts": [say("user", "Übersetze: 日本語 🙂 привет"), say("assistant", "Gern — «日本語»\tist “Japanese”.")],
    "empty answer": [say("user", ""), say("assistant", "")],
    "ends with the user": [say("user", "one"), say("assistant", "two"), say("user", "three")],
    "white space": [say("user", " \u00a0 a \n"), say("assistant", "b \u3000\n")],
}
WITH_TOOLS = {
    "a tool": [say("user", "Weather?"), say("assistant", "", tool_calls=[WEATHER]),
               say("tool", "{\"sky\": \"clear\",\n\"t\": 21}"), say("assistant", "It is clear.")],
}
WITH_TWO_TOOLS = {
    "two tools": [say("user", "Weather and time?"), say("assistant", "Let me see.", tool_calls=[WEATHER, CLOCK]),
                  say("tool", "clear"), say("tool", "12:00"), say("assistant", "Clear, noon.")],
}


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return made


def tokenizer_of(name):
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "..", "tokenizers", name + ".json"))
    for token in SPECIALS[name]:
        if tokenizer.token_to_id(token) is None:
            tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
    return tokenizer


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def cases(folder):
    for family, tokenizer_name, options, conversations in [
            ("chatml", "qwen2", {}, CONVERSATIONS),
            ("qwen2", "qwen2", {"default_system": "You are a helpful assistant."}, CONVERSATIONS),
            ("qwen2.5", "qwen2", {"default_system": QWEN25}, {**CONVERSATIONS, **WITH_TOOLS, **WITH_TWO_TOOLS}),
            ("llama3", "llama3", {}, CONVERSATIONS),
            ("llama3.1", "llama3", {"system_prefix": LLAMA31}, {**CONVERSATIONS, **WITH_TOOLS})]:
        with open(os.path.join(folder, family + ".jinja"), encoding="utf-8") as file:
            template = environment().from_string(file.read().rstrip("\n"))
        tokenizer = tokenizer_of(tokenizer_name)
        for name, messages in conversations.items():
            def text(count, prompt=False):
                return template.render(messages=messages[:count], bos_token="<|begin_of_text|>",
                                       add_generation_prompt=prompt)
            whole = text(len(messages))
            # A turn of the assistant begins where a generation prompt ends, and ends with its special token.
            turns = []
            for i, message in enumerate(messages):
                if message["role"] != "assistant":
                    continue
                start = len(text(i, True)) if family != "chatml" else len(text(i)) + len("<|im_start|>assistant\n")
                end = len(text(i + 1).rstrip("\n"))
                turns.append((start, end))
            ids, mask, last, at = [], [], [], 0
            for start, end in turns + [(len(whole), len(whole))]:
                for part, target in ((whole[at:start], 0), (whole[start:end], 1)):
                    found = ids_of(tokenizer, part)
                    ids += found
                    mask += [target] * len(found)
                    last += [target if (start, end) == turns[-1] else 0] * len(found)
                at = end
            # Borders of turns change no id: none of the answers begins with a newline.
            assert ids == ids_of(tokenizer, whole)
            yield {"name": family + ": " + name, "template": "llama3" if tokenizer_name == "llama3" else "chatml",
                   "tokenizer": tokenizer_name, **options, "raw": json.dumps({"messages": messages}, ensure_ascii=False), "text": whole, "ids": ids,
                   "mask": mask, "last": last}


if __name__ == "__main__":
    with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases(sys.argv[1])) + "\n]\n")
