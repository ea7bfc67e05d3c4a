# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains the demo model on the CPU.

    python train.py --work WORK --frames FRAMES --tokenizer DIR --minutes 85

saves WORK/checkpoint.pt every few minutes, goes on from there when started again, and leaves the
Hugging Face directory in WORK/model.  Time spent, not steps, drives the schedule, so that the run
ends on time on any machine.  Each core has a process of its own with one thread and a share of the
batch: at this model's size, threads that share every product spend their time waiting.
"""

import argparse
import math
import os
import shutil
import time

import torch
import torch.distributed as dist
from tokenizers import Tokenizer
from torch.nn import functional as F
from transformers import AutoProcessor, GenerationConfig, Lfm2VlConfig
from transformers import Lfm2VlForConditionalGeneration

import data

BATCH = 16  # of each process
# Share of the time that goes into small grids.
SMALL_UNTIL = 0.35
WARM_UP = 200
ADAM_RATE, MUON_RATE, LAST_RATE = 2e-3, 1e-2, 0.01
EMA_DECAY = 0.998


def make_config(tokenizer):
    token = tokenizer.token_to_id
    ids = {"bos_token_id": token("<|startoftext|>"), "eos_token_id": token("<|im_end|>"),
           "pad_token_id": token("<|pad|>")}
    text = dict(
        model_type="lfm2", vocab_size=tokenizer.get_vocab_size(), hidden_size=128,
        intermediate_size=320, block_auto_adjust_ff_dim=False, num_hidden_layers=4,
        num_attention_heads=2, num_key_value_heads=1, conv_L_cache=3, conv_bias=False,
        layer_types=["conv", "full_attention", "conv", "full_attention"],
        max_position_embeddings=1024, tie_word_embeddings=True, **ids)
    vision = dict(
        model_type="siglip2_vision_model", hidden_size=128, intermediate_size=256,
        num_hidden_layers=4, num_attention_heads=2, num_patches=256, patch_size=16,
        vision_use_head=False)
    return Lfm2VlConfig(
        text_config=text, vision_config=vision, image_token_id=token("<image>"),
        projector_hidden_size=192, projector_use_layernorm=False, downsample_factor=2,
        tie_word_embeddings=True, **ids)


def make_model(tokenizer):
    model = Lfm2VlForConditionalGeneration(make_config(tokenizer))
    table = model.model.vision_tower.embeddings.position_embedding.weight
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    frequency = 50 ** (-torch.arange(32) / 32.0)
    waves = [wave(axis.reshape(-1, 1) * frequency) for axis in (y, x)
             for wave in (torch.sin, torch.cos)]
    with torch.no_grad():
        # Learning two dimensions from scratch costs most of the time there is.
        table.copy_(torch.cat(waves, 1) * 0.3)
    model.generation_config = GenerationConfig(
        bos_token_id=model.config.text_config.bos_token_id,
        eos_token_id=model.config.text_config.eos_token_id,
        pad_token_id=model.config.text_config.pad_token_id)
    return model


def forward(model, batch):
    """Loss and features, as model(...) computes them for pictures of one grid, but with one
    position table for all of them and logits where there is something to learn only."""
    inner, (rows, columns) = model.model, batch["grid"]
    tower, count = inner.vision_tower, rows * columns
    pixels = (batch["patches"].float() - 127.5) / 127.5
    table = tower.embeddings.position_embedding.weight.reshape(16, 16, -1)
    hidden = tower.embeddings.patch_embedding(pixels)
    hidden = hidden + tower.embeddings.resize_positional_embeddings(
        table, torch.tensor([[rows, columns]]), count)
    for layer in tower.encoder.layers:
        hidden = layer(hidden, None)
    features = tower.post_layernorm(hidden)
    image = inner.multi_modal_projector(features.unflatten(1, (rows, columns)))

    ids = batch["ids"]
    embeddings = inner.language_model.embed_tokens(ids)
    slots = (ids == model.config.image_token_id).unsqueeze(-1)
    embeddings = embeddings.masked_scatter(slots, image)
    # Padding stands on the right, where a causal model does not see it.
    hidden = inner.language_model(inputs_embeds=embeddings, use_cache=False).last_hidden_state
    wanted = batch["targets"] >= 0
    logits = model.lm_head(hidden[wanted])
    return F.cross_entropy(logits, batch["targets"][wanted]), features, logits, wanted


def dense_loss(head, features, labels):
    parts = head(features).split(data.DENSE_WIDTHS, -1)
    return sum(F.cross_entropy(part.flatten(0, 1), labels[..., i].flatten(), ignore_index=-100)
               for i, part in enumerate(parts))


class Muon(torch.optim.Optimizer):
    """Momentum whose step for a matrix is made orthogonal (five Newton-Schulz iterations).  All
    matrices of a shape go through together, since small products are slow one by one, and each
    process does its share of them."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                shapes.setdefault(p.shape, []).append(p)
            steps = {shape: torch.zeros(len(ps), *shape) for shape, ps in shapes.items()}
            for shape, params in shapes.items():
                updates = []
                for p in params:
                    state = self.state[p]
                    if "momentum" not in state:
                        state["momentum"] = torch.zeros_like(p)
                    state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                    updates.append(p.grad.lerp(state["momentum"], group["momentum"]))
                mine = updates[rank::world]
                if mine:
                    steps[shape][rank::world] = orthogonal(torch.stack(mine))
            flat = torch.cat([x.flatten() for x in steps.values()])
            dist.all_reduce(flat)
            at = 0
            for shape, params in shapes.items():
                scale = group["lr"] * max(1, shape[0] / shape[1]) ** 0.5
                for p in params:
                    update = flat[at:at + p.numel()].view(shape)
                    at += p.numel()
                    p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-scale)


def orthogonal(x):
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x if wide else x.mT


def make_optimizers(model, head):
    matrices, others = [], []
    for name, p in model.named_parameters():
        (matrices if p.ndim == 2 and "embed" not in name else others).append(p)
    adam = torch.optim.AdamW(others + list(head.parameters()), lr=ADAM_RATE, betas=(0.9, 0.98),
                             weight_decay=0.01, fused=True)
    return [adam, Muon(matrices, MUON_RATE)]


class Gradients:
    """All gradients in one piece of memory, with room for a few numbers to be averaged too."""

    def __init__(self, params, extra):
        params = list(params)
        self.flat = torch.zeros(sum(p.numel() for p in params) + extra)
        self.extra = self.flat[-extra:]
        at = 0
        for p in params:
            p.grad = self.flat[at:at + p.numel()].view(p.shape)
            at += p.numel()

    def average(self, *numbers):
        self.extra.copy_(torch.tensor(numbers))
        dist.all_reduce(self.flat)
        self.flat /= dist.get_world_size()
        return self.extra.tolist()


@torch.no_grad()
def teacher_forced(model, maker, count, small):
    """Captions whose every token is the likeliest one, of batches training never sees."""
    exact = total = 0
    for number in range(count):
        # Negative numbers give seeds below the training range.
        batch = maker(-(number + 1) * 2000, small)
        _, _, logits, wanted = forward(model, batch)
        wrong = torch.zeros(wanted.shape, dtype=torch.bool)
        wrong[wanted] = logits.argmax(-1) != batch["targets"][wanted]
        exact += int((~wrong.any(1)).sum())
        total += len(wrong)
    return exact, total


def export(model, weights, tokenizer_directory, target):
    """Writes the averaged weights, rounded to f16, as a Hugging Face directory."""
    partial = target + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    copy = Lfm2VlForConditionalGeneration(model.config)
    copy.generation_config = model.generation_config
    copy.load_state_dict(weights)
    copy.half().save_pretrained(partial)
    AutoProcessor.from_pretrained(tokenizer_directory).save_pretrained(partial)
    shutil.rmtree(target, ignore_errors=True)
    os.rename(partial, target)


def save(path, state):
    torch.save(state, path + ".partial")
    os.replace(path + ".partial", path)


def train(rank, args):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=rank,
                            world_size=args.processes)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    tokenizer = Tokenizer.from_file(os.path.join(args.tokenizer, "tokenizer.json"))
    model = make_model(tokenizer)
    head = torch.nn.Linear(128, sum(data.DENSE_WIDTHS))
    params = list(model.parameters()) + list(head.parameters())
    optimizers = make_optimizers(model, head)
    rates = [[g["lr"] for g in o.param_groups] for o in optimizers]
    average = {k: v.detach().clone() for k, v in model.state_dict().items()}
    spent, step = 0.0, 0
    path = os.path.join(args.work, "checkpoint.pt")
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        head.load_state_dict(saved["head"])
        for optimizer, state in zip(optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
        average, spent, step = saved["average"], saved["spent"], saved["step"]
    if rank == 0:
        print("parameters", sum(p.numel() for p in model.parameters()), "step", step, flush=True)

    gradients = Gradients(params, 3)
    maker = data.BatchMaker(tokenizer, args.frames, BATCH)
    started = time.monotonic() - spent
    saved_at = spoken_at = spent
    sums = torch.zeros(2)
    while spent < args.minutes * 60:
        progress = spent / (args.minutes * 60)
        small = progress < SMALL_UNTIL
        factor = min(1, (step + 1) / WARM_UP) * (
            LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * progress)))
        for optimizer, base in zip(optimizers, rates):
            for group, rate in zip(optimizer.param_groups, base):
                group["lr"] = rate * factor

        batch = maker(step, small, rank)
        gradients.flat.zero_()
        loss, features, _, _ = forward(model, batch)
        dense = dense_loss(head, features, batch["dense"])
        (loss + dense).backward()
        # The processes agree on the time too, so that they change and end together.
        *losses, spent = gradients.average(loss.item(), dense.item(), time.monotonic() - started)
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        for optimizer in optimizers:
            optimizer.step()
        step += 1
        if rank != 0:
            continue

        state = model.state_dict()
        torch._foreach_lerp_([average[k] for k in state], list(state.values()),
                             1 - min(EMA_DECAY, step / (step + 10)))
        sums += torch.tensor(losses)
        if step % 100 == 0:
            print(f"{step} {spent:.0f}s {(spent - spoken_at) * 10:.0f}ms"
                  f" caption {sums[0] / 100:.4f} dense {sums[1] / 100:.4f}", flush=True)
            sums.zero_()
            spoken_at = spent
        if spent - saved_at > args.save_every:
            saved_at = spent
            save(path, {"model": state, "head": head.state_dict(), "step": step, "spent": spent,
                        "optimizers": [o.state_dict() for o in optimizers], "average": average})
            now = {k: v.clone() for k, v in state.items()}
            model.load_state_dict(average)
            print("average's exact captions %d of %d" % teacher_forced(model, maker, 12, small),
                  flush=True)
            model.load_state_dict(now)
            export(model, average, args.tokenizer, os.path.join(args.work, "model"))
    if rank == 0:
        export(model, average, args.tokenizer, os.path.join(args.work, "model"))
        print("done", step, f"{spent:.0f}s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--frames", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--minutes", type=float, default=85)
    parser.add_argument("--save-every", type=float, default=180, help="seconds")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--port", type=int, default=29417)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    torch.multiprocessing.spawn(train, (args,), nprocs=args.processes)


if __name__ == "__main__":
    main()
