"""The strings that the tokenizer goldens are made of: written ones and seeded ones."""

import unicodedata

from golden_corpus import EMOJI, PUNCT, Stream, invented_words, training_text
from golden_vocab import short_specials

# Only code points that Unicode 3.2 already knew (Python carries that table unchanged), so that no
# regex engine is too old for them; U+180E is left out because engines disagree whether it is a space.
BLOCKS = [
    (0x21, 0x7E), (0xA0, 0xFF), (0x100, 0x17F), (0x180, 0x233), (0x250, 0x2AD), (0x2B0, 0x2EE), (0x300, 0x36F),
    (0x370, 0x3F5), (0x400, 0x4F9), (0x531, 0x58A), (0x591, 0x5F4), (0x60C, 0x6FE), (0x700, 0x74A),
    (0x780, 0x7B0), (0x901, 0x970), (0x981, 0x9FA), (0xA02, 0xA74), (0xA81, 0xAEF), (0xB82, 0xBF2), (0xC01, 0xC6F),
    (0xD02, 0xD6F), (0xD82, 0xDF4), (0xE01, 0xE5B), (0xE81, 0xEDD), (0xF00, 0xFCF), (0x1000, 0x1059),
    (0x10A0, 0x10FB), (0x1100, 0x11F9), (0x1200, 0x137C), (0x13A0, 0x13F4), (0x1401, 0x1676), (0x1680, 0x169C),
    (0x16A0, 0x16F0), (0x1780, 0x17E9), (0x1800, 0x18A9), (0x1E00, 0x1EF9), (0x1F00, 0x1FFE), (0x2000, 0x206F),
    (0x2070, 0x20B1), (0x20D0, 0x20EA), (0x2100, 0x213A), (0x2153, 0x2183), (0x2190, 0x23CE), (0x2400, 0x244A),
    (0x2460, 0x24FE), (0x2500, 0x27BE), (0x27D0, 0x2AFF), (0x2E80, 0x2FFB), (0x3000, 0x303F), (0x3041, 0x30FF),
    (0x3105, 0x31B7), (0x3200, 0x33FE), (0x3400, 0x4DB5), (0x4E00, 0x9FA5), (0xA000, 0xA4C6), (0xAC00, 0xD7A3),
    (0xF900, 0xFA6A), (0xFB00, 0xFDFC), (0xFE00, 0xFE6B), (0xFE70, 0xFEFC), (0xFF01, 0xFFEE), (0xFFF9, 0xFFFD),
    (0x10300, 0x1034A), (0x10400, 0x1044D), (0x1D400, 0x1D7FF), (0x20000, 0x2A6D6), (0xE0001, 0xE007F),
]

SPACES = [" ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\n\r", " \n", "\n ", " \n x", "\u00a0",
          "\u00a0\u00a0", "\u3000", "\u3000 ", " \u3000", "\u0085", "\u2028", "\u2029", "\u2009", "\u200a ", "\u1680",
          "\u202f", "\u205f", "\u200b", "\ufeff", "\x0b", "\x0c", "\x1c", "\x1f", " \t ", "\t \n\t", "  \r\n  ",
          "\u0085\n", "\n\u0085", " \u00a0\n", "      ", " " * 16, " " * 33, "\n" * 5, "\r\n" * 4, "\t" * 9]

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'VE", "'M", "'LL", "'D", "'Ll",
                "'lL", "'Re", "'vE", "'\u017f", "\u2019s", "\u2019t", "`s", "''s", "'sa", "'st", "'ll's", "'x", "'",
                "'l", "'r", "'v"]

WRITTEN = [
    "", " ", "a", "I", ".", "\n", "Hello, world!", "a  b", "trailing  ", "def f():\n    return  x", "I'M", "DON'T",
    "don't", "'Tis the season", "rock 'n' roll", "中文标点，测试123。", "日本語・テスト123", "Привет, мир! 123", "123456",
    " \n x", "Describe the image.", "user\nDescribe the image.", "assistant\n", "system\nYou are helpful.",
    "http://example.org/a?b=c&d=%20#e", "a@b.cz", "C:\\temp\\x.txt", "/usr/share/doc", "x = y ** 2 + z[3:5];",
    "for (int i = 0; i < n; i++) {\r\n\tsum += a[i];\r\n}\r\n", "{\"label\": \"dog\", \"bbox\": [0.1, 0.25, 0.5, 1]}",
    "Detect all instances of: dog. Response must be a JSON array: [{\"label\": ..., \"bbox\": [x1, y1, x2, y2]}, ...].",
    "naïve café", "nai\u0308ve cafe\u0301", "Å Å A\u030a", "ﬁ ﬂ ﬃ", "Straße STRASSE ẞ", "ǅ ǈ ǋ", "İstanbul ıi",
    "ΑΒΓ άέή ς σ", "שָׁלוֹם", "مَرْحَبًا ١٢٣", "नमस्ते १२३४", "สวัสดี๑๒๓", "안녕하세요 123", "한글",
    "ｆｕｌｌ　ｗｉｄｔｈ１２３", "①②③ ⅠⅡⅢ ½ ¾ ²³", "٣٤٥٦٧٨٩", "۱۲۳۴۵", "१२३४५६७", "๑๒๓๔", "〇一二三", "𝟘𝟙𝟚𝟛 𝐀𝐁",
    "😀", "😀😀😀", "👨‍👩‍👧‍👦", "👩🏽‍💻 codes", "❤️ vs ❤", "🇫🇷🇩🇪", "1️⃣2️⃣", "☃︎ ☃️", "a😀b 😀c", "(╯°□°)╯︵ ┻━┻",
    "\x00", "a\x00b", "\x01\x02\x7f", "\x1b[31mred\x1b[0m", "\u200b\u200d\u2060", "\ufeffBOM", "\u202eRTL\u202c",
    "e\u0301\u0302\u0303", "\u0301", " \u0301a", "a\u0301\u0301b", "\ud7ff\ue000", "\ufffd\ufffd", "\U000f0000",
    "\U0010ffff", "_underscore_ __init__", "snake_case camelCase PascalCase kebab-case", "$100.00 €5,50 £3",
    "3.14159 1e-10 0xFF 1,000,000", "10:30am 2024-01-31", "!!! ??? ...", "--- *** ___ ###", "a.b.c", "U.S.A.",
    "...and", "—em—dash—", "“quotes” ‘single’", "don’t can’t I’ll", "…", "tab\tseparated\tvalues", "a\u00a0b", "a\u3000b",
    "x\u0085y", "line one\nline two\r\nline three\rline four", "\n\n\n", " \n \n ", "end \n", "end\n ", "end \r\n",
    "!\n", "!\r\n\r\n", " !\n\n x", "?!\n?!", " \t\n", "a \n b", "a\n\n  b", "    indented", "\tindented", "  ",
    "'s", " 's", "s's", "'S's'T", "he'll've", "Y'ALL'D'VE", "O'Neill's", "'twas", "l'été", "1's", "1980's", "it's'",
    "a1b2c3", "abc123def4567", "12ab", "1 2 3", "1234567890" * 3, "٠١٢ab", "#hashtag @mention", "a/b\\c|d", "<b>bold</b>",
    "<|", "|>", "<||>", "<|x|>", "< |im_end| >", "<image", "image>", "<Image>", "<IMAGE>",
]

CONTROL_FRAMES = ["%s", " %s", "%s ", "  %s  ", "a%s", "%sb", "a%sb", "a %s b", "\n%s\n", "%s%s", "%s\n%s", "(%s)",
                  "'%s'", "%s's", "1%s2", "😀%s😀", "<%s>", "<|%s|>", "\t%s\r\n", "é%s日本"]


def assigned():
    """Code points by block, without surrogates, private ones and U+180E."""
    table = unicodedata.ucd_3_2_0
    blocks = []
    for first, last in BLOCKS:
        block = [c for c in range(first, last + 1)
                 if c != 0x180E and table.category(chr(c)) not in ("Cn", "Cs", "Co")]
        blocks.append(block)
    return blocks


def spaced(stream):
    words = ["a", "Word", "don't", "123", "日本", "!", ".)", "é", "😀", "x_y"]
    for space in SPACES:
        yield space
        for _ in range(9):
            yield stream.pick(words) + space + stream.pick(words)
        yield space + stream.pick(words)
        yield stream.pick(words) + space
    for _ in range(150):
        yield "".join(stream.pick(SPACES if i % 2 else words) for i in range(3 + stream.below(6)))


def contracted(stream):
    words = ["I", "we", "you", "he", "DON", "don", "it", "L", "été", "я", "日", "1", "x1", ".", " "]
    for mark in CONTRACTIONS:
        yield mark
        yield mark + " end"
        for _ in range(5):
            yield stream.pick(words) + mark + stream.pick(["", " ", ".", "x", "\n", "'", " it"])


def digits(stream):
    zeros = [0x30, 0x30, 0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xBE6, 0xE50, 0xFF10, 0x1D7CE]
    for length in range(1, 13):
        for _ in range(12):
            zero = stream.pick(zeros)
            run = "".join(chr(zero + (stream.below(9) + 1 if zero == 0xBE6 else stream.below(10))) for _ in range(length))
            yield stream.pick(["", "", " ", "a", "-", "$", "'", "\n"]) + run + stream.pick(["", "", " ", "th", ".", ",5", "٣", "½"])


def mixed(stream, blocks):
    everything = [c for block in blocks for c in block]
    for block in blocks:
        for _ in range(9):
            yield "".join(chr(stream.pick(block)) for _ in range(1 + stream.below(14)))
        yield "".join(chr(stream.pick(block)) + stream.pick(["", " ", "", "a", "1", "\n"]) for _ in range(6))
    for _ in range(280):
        yield "".join(chr(stream.pick(everything)) for _ in range(1 + stream.below(20)))
    pieces = PUNCT + EMOJI + SPACES + CONTRACTIONS + ["the", "The", "WORD", "é", "日本語", "12", "3456", "я"]
    for _ in range(350):
        yield "".join(stream.pick(pieces) for _ in range(2 + stream.below(9)))


def control(stream):
    specials = short_specials()
    frequent = ["<|im_end|>", "<|im_start|>", "<image>", "<|startoftext|>", "<|endoftext|>", "<|image_start|>", "<|pad|>"]
    for token in frequent:
        for frame in CONTROL_FRAMES:
            yield frame.replace("%s", token)
    for token in specials[::5]:
        yield stream.pick(CONTROL_FRAMES).replace("%s", token)
    for _ in range(100):
        token = stream.pick(frequent)
        cut = 1 + stream.below(len(token) - 1)
        yield stream.pick([token[:cut], token[cut:], token[:cut] + stream.pick(frequent) + token[cut:],
                           token[:cut] + " " + token[cut:], token.upper(), token + token, token + stream.pick(specials)])
    yield "<|im_start|>user\n<image>Describe.<|im_end|>\n<|im_start|>assistant\n"
    yield "<|startoftext|><|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"


def long_ones(stream):
    words = invented_words(stream, 40)
    yield "a" * 1000
    yield "ab" * 700
    yield "".join(words) * 3
    yield "é" * 500
    yield "日本語" * 200
    yield "😀" * 200
    yield " " * 700
    yield "\n" * 300
    yield "." * 800
    yield "1234567" * 100
    yield "x" * 300 + " " * 300 + "y" * 300
    yield "\u0301" * 200
    yield "_-" * 300
    yield " a" * 400
    yield "'s" * 200


def strings():
    """Every string once, in a fixed order."""
    stream = Stream(99)
    blocks = assigned()
    made = list(WRITTEN)
    for part in (spaced(stream), contracted(stream), digits(stream), mixed(stream, blocks), control(stream),
                 long_ones(stream)):
        made += part
    made += [chr(stream.pick(block)) for block in blocks for _ in range(4)]
    made += training_text(98, 450, 250)
    made = [m for m in made if not any(0xD800 <= ord(c) < 0xE000 for c in m)]
    return list(dict.fromkeys(made))
