"""Tokenizer goldens: what the `tokenizers` library makes of the strings, in several settings."""

import copy
import json
import os

import golden_vocab as vocab
from golden_common import write_bytes, write_json
from golden_corpus import Stream
from golden_strings import strings


def byte_of_char():
    """GPT-2 byte alphabet: character to byte."""
    kept = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {chr(b): b for b in kept}
    moved = [b for b in range(256) if b not in kept]
    table.update({chr(256 + i): b for i, b in enumerate(moved)})
    return table


BYTES = byte_of_char()


def raw_bytes(data, tok, ids):
    """The bytes that ids stand for; added tokens give their own text (normalised where the flag says so)."""
    added = {t["id"]: tok.id_to_token(t["id"]).encode() for t in data["added_tokens"]}
    words = {i: w for w, i in data["model"]["vocab"].items()}
    return b"".join(added[i] if i in added else bytes(BYTES[c] for c in words[i]) for i in ids)


def text_entry(text):
    """jansson refuses NUL in strings unless told otherwise, so such strings come as hex."""
    return {"hex": text.encode().hex()} if "\0" in text else {"text": text}


def encode_all(data, texts):
    """Each text with its ids as user text (`plain`) and, where they differ, with special tokens read."""
    both, plain = vocab.load(data), vocab.load(vocab.without_added(data))
    entries = []
    for text in texts:
        ids = plain.encode(text, add_special_tokens=False).ids
        with_special = both.encode(text, add_special_tokens=False).ids
        entry = {**text_entry(text), "plain": ids}
        if with_special != ids:
            entry["special"] = with_special
        entries.append(entry)
    return entries


def decode_all(data, encoded, count, seed):
    """ids to bytes: whole strings, cut strings and random ids."""
    tok, stream, entries = vocab.load(data), Stream(seed), []
    size = vocab.vocabulary_size(data)
    sequences = [e.get("special", e["plain"]) for e in encoded[:: max(1, len(encoded) // count)]]
    for ids in list(sequences):
        if len(ids) > 3:
            start = stream.below(len(ids) - 2)
            sequences.append(ids[start : start + 1 + stream.below(len(ids) - start)])
    sequences += [[stream.below(size) for _ in range(1 + stream.below(12))] for _ in range(count)]
    for ids in sequences:
        if len(ids) > 60:
            continue
        raw, text = raw_bytes(data, tok, ids), tok.decode(ids, skip_special_tokens=False)
        assert raw.decode("utf-8", "replace") == text, (ids, raw, text)
        entry = {"ids": ids, "hex": raw.hex()}
        skipped = tok.decode(ids, skip_special_tokens=True)
        if skipped != text and "\0" not in skipped:
            entry["skip_special"] = skipped
        entries.append(entry)
    return entries


# ---------------------------------------------------------------- variants


def merges_as_strings(data):
    data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    return data


def ignore_merges(data):
    """Vocabulary entries that no merge reaches: only a whole-piece look-up finds them."""
    data["model"]["ignore_merges"] = True
    next_id = vocab.vocabulary_size(data)
    for word in ("Ġwonderful", "Ġunreachable", "WORD", "Ġ12", "xyzzy", "ĠĊ", "Ġ...", "日本"):
        spelled = "".join(next(c for c, b in BYTES.items() if b == x) for x in word.encode()) \
            if word == "日本" else word
        if spelled not in data["model"]["vocab"]:
            data["model"]["vocab"][spelled] = next_id
            next_id += 1
    return data


def replace_rules(data):
    rules = [("\u2018", "'"), ("\u2019", "'"), ("\u201c", "\""), ("\u201d", "\""), ("\u2026", "..."), ("\u2013", "-"),
             ("\u2014", "--"), ("\u00a0", " "), ("ab", "ba"), ("aa", "a"), ("\u200b", "")]
    data["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": a}, "content": b} for a, b in rules]}
    return data


def odd_added(data):
    """Added tokens with every flag, on top of the replace rules, so that `normalized` matters."""
    data = replace_rules(data)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    wanted = [("<note\u2026>", {"normalized": True}), ("<raw\u2026>", {}), ("<strip-left>", {"lstrip": True}),
              ("<strip-right>", {"rstrip": True}), ("<strip-both>", {"lstrip": True, "rstrip": True}),
              ("zword", {"single_word": True}), ("<plain-added>", {"special": False}),
              ("<plain-normal>", {"special": False, "normalized": True}), ("<a>", {}), ("<a>b", {}), ("<a><a>", {}),
              ("two words", {}), ("日本", {"normalized": True}), ("\"q\"", {"normalized": True})]
    next_id = vocab.vocabulary_size(data)
    for i, (content, over) in enumerate(wanted):
        data["added_tokens"].append({"id": next_id + i, "content": content, **flags, **over})
    return data


ODD_STRINGS = [
    "<note\u2026>", "<note...>", "x <note...> y", "<raw\u2026>", "<raw...>", "a <strip-left> b", "a  <strip-left>  b",
    "a <strip-right> b", "a \n<strip-right>\n b", "a <strip-both> b", "\t<strip-both>\n\n", "zword", "a zword b",
    "azword", "zwordy", "zword.", ".zword", "zword1", "zword_", "é zword", "ézword", "zword zword", "<plain-added>",
    "a<plain-added>b", "<plain-normal>", "<a>", "<a>b", "<a>c", "<a><a>", "<a><a><a>", "<a><a>b", "<<a>>", "two words",
    "two  words", "two words two words", "日本", "日本語", "x日本y", "\"q\"", "\u201cq\u201d", "\u201cq\"", "ab", "aab", "abab", "aaaa",
    "aaaab", "\u2026", "a\u200bb", "\u200b", "a\u00a0b", "a\u00a0\u00a0b", "\u2014\u2013", "<|im_end|>\u2026<image>",
    "<im\u200bage>", "<|im_\u200bend|>", "it\u2019s", "\u2018tis", "a\u2026\u2026b",
]


# Where the regex of the 128k vocabulary cuts otherwise: contractions in capitals, runs of line ends.
RUN_STRINGS = [
    "I'M", "we'LL", "you'Ve", "it'S", "'s", "''s", "x'y", "don't", "DON'T", "they'RE here", "he'd", "'Tis", "\u017f's",
    "a\n\nb", "a\n\n\nb", "a\r\n\r\nb", " \n \n ", "\n\n  x", "  \n\n", "\t\n\r\n", "a \n\n b", "!\n\n\n?", "1\n\n2",
]


def make_tokenizer(out, args):
    folder = os.path.join(out, "tokenizer")
    texts = strings()
    some = texts[:160] + texts[160::9]
    base = vocab.standard(5000, 5, 9000)
    small = vocab.standard(1200, 6, 5000)
    moved = vocab.moved(900, 7, 5000)
    regex_128k = vocab.moved(900, 8, 5000, vocab.SPLIT_128K)
    sets = [("base", base, texts), ("merges-as-strings", merges_as_strings(copy.deepcopy(small)), some),
            ("ignore-merges", ignore_merges(copy.deepcopy(small)),
             some + [" wonderful", "wonderful", " unreachable", "WORD", "WORDS", " 12", " 123", "xyzzy", " \n", " ...", "日本",
                     "日本語", "a wonderful WORD"]),
            ("replace", replace_rules(copy.deepcopy(small)), some + ODD_STRINGS),
            ("added-flags", odd_added(copy.deepcopy(small)), some[:120] + ODD_STRINGS),
            ("moved", moved, some), ("regex-128k", regex_128k, some + RUN_STRINGS)]
    files = []
    for name, data, wanted in sets:
        write_bytes(os.path.join(folder, name + ".tokenizer.json"),
                    json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())
        encoded = encode_all(data, list(dict.fromkeys(wanted)))
        decoded = decode_all(data, encoded, 150 if name == "base" else 40, 300 + len(files))
        write_json(os.path.join(folder, name + ".json"), {
            "tokenizer": name + ".tokenizer.json", "vocab_size": vocab.vocabulary_size(data),
            "encode": encoded, "decode": decoded})
        differing = sum("special" in e for e in encoded)
        files.append(name)
        print("tokenizer %-18s %5d strings, %4d differ with special tokens, %4d decodes" % (
            name, len(encoded), differing, len(decoded)))
