#!/usr/bin/env python3
"""Makes the golden data of tests/golden: see README.md there.

    make_golden.py [--out DIR] [--only PART[,PART]] [--model NAME[,NAME]]

Parts: models. Running it again on the same host gives the same bytes.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402

import golden_cases  # noqa: E402
from golden_common import HERE  # noqa: E402
from golden_models import MODELS  # noqa: E402


def make_models(out, args):
    wanted = args.model.split(",") if args.model else list(MODELS)
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        for name in wanted:
            golden_cases.make_model(out, scratch, name)


PARTS = {"models": make_models}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=HERE)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--model", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for part in args.only.split(","):
        PARTS[part](args.out, args)


if __name__ == "__main__":
    main()
