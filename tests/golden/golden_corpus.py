"""Seeded training text for the little tokenizers: made-up sentences in many scripts.

Everything comes from the word lists below and from splitmix64, so the trained vocabulary depends
on this file and on the version of `tokenizers` only.
"""

from golden_common import splitmix64

ENGLISH = """the a an of to and in is it on that for with as at by from this be are was were not
have has had but or if then than so no yes all one two three four five what which who when where
why how can could will would should may might must do does did done make made see seen look looks
image picture video frame shows show showing red green blue black white yellow orange purple grey
square circle triangle line left right top bottom centre middle moving moves up down slowly fast
person people man woman child dog cat bird horse car bus train bicycle boat tree house street road
water sky cloud sun light dark night day morning large small tall short long wide bright near far
describe caption detail details question answer word words text user assistant system help hello
world time year work first last new old great little own other good high different next early
young important few public same able because between under over after before through during
number between system program file function return value object class string list int float
printf import define include struct static const void char while for else break continue
there their they them then these those here hers him his her she he you your we our us my me""".split()

OTHER = {
    "french": "le la les un une des et est dans pour avec qui que sur pas plus être été où là garçon "
              "élève français château naïve œuvre déjà après forêt noël",
    "german": "der die das und ist nicht ein eine mit auf für von dem Straße größer schön Übung Mädchen "
              "König fünf weiß heißt über können",
    "spanish": "el los las una que con por para más niño mañana años también está corazón qué cómo",
    "turkish": "bir ve bu için çok güzel İstanbul ışık şehir değil ağaç öğrenci",
    "polish": "jest nie się na że jak ale tak dzień dobry żółw źródło łódź część ćma",
    "vietnamese": "một người không được trong nước Việt Nam những đẹp",
    "greek": "και το είναι στο με για που της δεν μου εικόνα ημέρα Ελλάδα",
    "russian": "и в не на я быть он с что это мир привет картинка город вода день ночь хорошо ещё",
    "ukrainian": "і що це як день їжак ґанок Київ мова",
    "hebrew": "של את על לא הוא זה עם מה שלום תמונה",
    "arabic": "في من على إلى هذا أن كان ما مع صورة مرحبا العالم",
    "hindi": "और के है में की को यह से नमस्ते दुनिया चित्र हिन्दी",
    "thai": "ที่ และ เป็น ใน มี ของ ไม่ สวัสดี ภาพ",
    "korean": "그리고 이것은 안녕하세요 세계 사진 한국어 사람 하늘 물",
    "japanese": "これは 日本語 です テスト 画像 を 見る の と カメラ 世界 こんにちは",
    "chinese": "这是 图片 中文 我们 你好 世界 人 天 水 红色 蓝色 的 是 在 標點 測試",
    "georgian": "და არის ეს გამარჯობა მსოფლიო",
    "armenian": "և է այս բարեւ աշխարհ",
    "amharic": "እና ነው ሰላም ዓለም",
    "tamil": "மற்றும் வணக்கம் உலகம்",
    "bengali": "এবং এই নমস্কার বিশ্ব",
}

EMOJI = ["😀", "🎉", "❤️", "👩‍💻", "👨‍👩‍👧", "🇫🇷", "👍🏽", "☃", "✨", "→", "≤", "€", "£", "°", "½"]
PUNCT = [".", ",", "!", "?", ";", ":", " -", "...", "'s", "'t", "n't", "'ll", "'re", "'ve", "'m", "'d",
         "\"", ")", " (", " [", "]", "{", "}", " =", " ==", " +=", " ->", "();", "\n", "\n\n", "\r\n",
         "\t", "  ", "    ", " <", "<|", "|>", " <|", "|", "<b>", "</b>", "_", "。", "，", "？", "、", "·", "“", "”", "’", "…", "—", "–"]
SYLLABLES = ("ba be bi bo bu ca ce co da de di do du fa fe fi fo ga ge go ha he hi ho ka ke ki ko la le li "
             "lo lu ma me mi mo mu na ne ni no nu pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu "
             "va ve vi vo wa we za ze zo th sh ch st tr pr ing er est ly tion ment ness").split()


class Stream:
    """A little random source: stream.below(n) gives 0..n-1."""

    def __init__(self, seed):
        self.state = seed << 32

    def below(self, n):
        self.state += 1
        return splitmix64(self.state & ((1 << 64) - 1)) % n

    def pick(self, items):
        return items[self.below(len(items))]

    def skewed(self, items):
        """Early items are more likely, as words are in a language."""
        return items[self.below(self.below(len(items)) + 1)]


def invented_words(stream, count):
    words = []
    for _ in range(count):
        words.append("".join(stream.pick(SYLLABLES) for _ in range(2 + stream.below(3))))
    return words


def sentence(stream, lists, invented):
    kind = stream.below(10)
    if kind < 5:
        words = ENGLISH
    elif kind < 7:
        words = invented
    else:
        words = lists[stream.below(len(lists))]
    parts = []
    for i in range(3 + stream.below(12)):
        word = stream.skewed(words)
        style = stream.below(12)
        if style == 0 or i == 0:
            word = word.capitalize()
        elif style == 1:
            word = word.upper()
        parts.append(word if not parts else " " + word)
        extra = stream.below(9)
        if extra == 0:
            parts.append(stream.pick(PUNCT))
        elif extra == 1:
            parts.append(" " + str(stream.below(10 ** (1 + stream.below(6)))))
        elif extra == 2 and stream.below(4) == 0:
            parts.append(" " + stream.pick(EMOJI))
    return "".join(parts) + stream.pick([". ", "? ", "! ", "\n", ".\n", "。"])


def training_text(seed, sentences, invented=400):
    stream = Stream(seed)
    lists = [text.split() for text in OTHER.values()]
    words = invented_words(stream, invented)
    return [sentence(stream, lists, words) for _ in range(sentences)]
