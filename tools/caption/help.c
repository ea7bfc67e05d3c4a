/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "help.h"

const char vlm_help_text[] =
    "Usage: vlm-caption [OPTION...] INPUT...     captions videos and pictures\n"
    "       vlm-caption search DB WORD...        finds captions again\n"
    "INPUT: files, folders, \"globs\", URIs; - reads a list of them.\n"
    "\n"
    "Frames  --every 2s | --fps N | --scenes | --scene-change 0.05\n"
    "        --from TIME  --to TIME\n"
    "Words   -m, --model MODEL   -p, --prompt TEXT   -n, --max-tokens N\n"
    "Output  --srt PATH  --vtt PATH  --html FILE  --mkv PATH  --burn PATH\n"
    "        --jsonl FILE  --db FILE     as captions come; what --resume goes on with\n"
    "        --min-cue TIME  --max-cue TIME\n"
    "Run     --resume  --overwrite  --jobs N  -q, --quiet\n"
    "\n"
    "  vlm-caption -m LFM2.5-VL-450M holiday.mp4\n"
    "  vlm-caption -m LFM2.5-VL-450M --scenes --srt holiday.srt holiday.mp4\n"
    "  vlm-caption -m LFM2.5-VL-450M --db captions.db --html sheet.html ~/Videos\n"
    "  vlm-caption search captions.db red circle --clip 1 found.mkv\n"
    "  find . -name '*.jpg' | vlm-caption -m LFM2.5-VL-450M --jsonl out.jsonl -\n"
    "\n"
    "Without --model, the model is that of $VLMCAPTION_MODEL or a small built-in one,\n"
    "which only knows drawn shapes and test patterns. Exit status: 0 all went well,\n"
    "1 something failed, 2 wrong command line, 130 interrupted.\n"
    "All options: vlm-caption --help-all, man vlm-caption\n";
