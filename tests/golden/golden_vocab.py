"""Tokenizers in the LFM2 pipeline: split by regex, byte alphabet, BPE, special tokens by name."""

import copy
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from golden_corpus import training_text

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLIT_128K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
BOS = "<|startoftext|>"
IMAGE = "<image>"


def named_specials():
    """id -> text for the 65k layout; every id in 0..499 has a name."""
    names = {0: "<|pad|>", 1: BOS, 2: "<|endoftext|>", 3: "<|fim_pre|>", 4: "<|fim_mid|>", 5: "<|fim_suf|>",
             6: "<|im_start|>", 7: "<|im_end|>", 8: "<|tool_list_start|>", 9: "<|tool_list_end|>",
             10: "<|tool_call_start|>", 11: "<|tool_call_end|>", 12: "<|tool_response_start|>",
             13: "<|tool_response_end|>", 396: IMAGE, 497: "<|img_thumbnail|>", 498: "<|image_start|>",
             499: "<|image_end|>"}
    for row in range(1, 11):
        for col in range(1, 11):
            names[397 + 10 * (row - 1) + col - 1] = "<|img_row_%d_col_%d|>" % (row, col)
    for i in range(500):
        names.setdefault(i, "<|reserved_%d|>" % (i - 10))
    return [names[i] for i in range(500)]


def short_specials():
    """Without the reserved ones: for the tokenizer whose special ids stand elsewhere."""
    return [s for s in named_specials() if "reserved" not in s]


def pipeline(split):
    tok = Tokenizer(models.BPE(dropout=None, unk_token=None, fuse_unk=False, byte_fallback=False))
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(split), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
    ])
    tok.decoder = decoders.ByteLevel()
    return tok


def train(vocab_size, specials, seed, sentences, split=SPLIT):
    tok = pipeline(split)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, show_progress=False, special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tok.train_from_iterator(training_text(seed, sentences), trainer)
    return tok


def _finish(data, bos_id):
    data["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing",
         "single": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                  {"SpecialToken": {"id": BOS, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
         "special_tokens": {BOS: {"id": BOS, "ids": [bos_id], "tokens": [BOS]}}}]}
    return data


def standard(vocab_size, seed, sentences):
    """tokenizer.json data with the special tokens at ids 0..499, as in the 65k vocabulary."""
    specials = [AddedToken(s, special=True, normalized=False) for s in named_specials()]
    tok = train(vocab_size, specials, seed, sentences)
    data = _finish(json.loads(tok.to_str()), 1)
    assert data["added_tokens"][396]["content"] == IMAGE and data["added_tokens"][396]["id"] == 396
    return data


def moved(plain_vocab, seed, sentences, split=SPLIT):
    """Special tokens after the ordinary ones, and only in added_tokens; 396 is an ordinary word."""
    tok = train(plain_vocab, [], seed, sentences, split)
    data = json.loads(tok.to_str())
    size = len(data["model"]["vocab"])
    data["added_tokens"] = [
        {"id": size + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True} for i, s in enumerate(short_specials())]
    return _finish(data, size + short_specials().index(BOS))


def without_added(data):
    """A copy that recognises no special token: how user text has to be tokenised."""
    plain = copy.deepcopy(data)
    plain["added_tokens"], plain["post_processor"] = [], None
    return plain


def load(data):
    return Tokenizer.from_str(json.dumps(data, ensure_ascii=False))


def vocabulary_size(data):
    ids = list(data["model"]["vocab"].values()) + [t["id"] for t in data["added_tokens"]]
    return max(ids) + 1


def special_id(data, text):
    return next(t["id"] for t in data["added_tokens"] if t["content"] == text)
