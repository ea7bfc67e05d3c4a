# SPDX-License-Identifier: LGPL-2.1-or-later
"""What was measured of each contestant: whether it may be compared, medians, ratios, tables."""

import statistics

OURS = "vlmcaption"
WHOLE, LINEAR = "all", "linear layers only"

# What must be equal for two figures of a stage to be about the same work.
THREADS = ("threads",)
VISION = ("patches", "image_tokens", "vision_layers", "vision_width")
TEXT = ("text_layers", "text_width")
STAGES = {
    "vision": THREADS + VISION,
    "prefill": THREADS + TEXT + ("prefilled_tokens",),
    "decode": THREADS + TEXT + ("decoded_tokens", "prompt_tokens"),
    "frame to caption": THREADS + VISION + TEXT + ("prompt_tokens", "answer_tokens"),
    "start to caption": THREADS + VISION + TEXT + ("prompt_tokens", "answer_tokens"),
}
# A graph of linear layers alone has no context that its tokens could look back at.
NOT_LINEAR = {"decode": ("prompt_tokens",)}
FEWEST_RUNS = 5

LLAMA = "llama.cpp"
# How many times as long as ours the best of all others and llama.cpp are to take, at least; None: no matter.
AIMS = {"vision": (1.6, 6), "prefill": (1.25, 4.8), "decode": (1.4, 2), "frame to caption": (None, 3.5),
        "start to caption": (None, 1)}
SAME_FILE_AIM = 1.3
SAME_FILE_STAGES = ("vision", "prefill", "decode", "frame to caption")


class NotComparable(Exception):
    """Two contestants did not do the same work."""


def record(stage, name, shape, runs, parts=WHOLE, **more):
    """One contestant's figures for a stage. shape: what STAGES asks for, as the contestant tells it; runs: seconds."""
    return dict(stage=stage, name=name, shape=dict(shape), runs=list(runs), parts=parts, **more)


def keys_of(entry):
    skipped = NOT_LINEAR.get(entry["stage"], ()) if entry["parts"] == LINEAR else ()
    return [key for key in STAGES[entry["stage"]] if key not in skipped]


def check(records, fewest_runs=FEWEST_RUNS):
    """Raises NotComparable for records of a stage that differ in what they worked on or how."""
    first = {}
    for entry in records:
        known = first.setdefault(entry["stage"], entry)
        if len(entry["runs"]) < fewest_runs or len(entry["runs"]) != len(known["runs"]):
            raise NotComparable("%s: %s has %d runs, %s has %d, expected the same number, at least %d" % (
                entry["stage"], entry["name"], len(entry["runs"]), known["name"], len(known["runs"]), fewest_runs))
        for key in keys_of(entry):
            if key not in entry["shape"]:
                raise NotComparable("%s: %s does not tell its %s" % (entry["stage"], entry["name"], key))
            if key not in keys_of(known):
                continue
            if entry["shape"][key] != known["shape"][key]:
                raise NotComparable("%s: %s has %s = %s, %s has %s" % (
                    entry["stage"], entry["name"], key, entry["shape"][key], known["name"], known["shape"][key]))


def stages_of(records):
    """[(stage, its records)], in the order of STAGES."""
    return [(stage, found) for stage in STAGES if (found := [r for r in records if r["stage"] == stage])]


def compare(records, fewest_runs=FEWEST_RUNS):
    """Records with "median" and two ratios, above 1 where we are faster: "ratio", how many times as long as the first
    of ours in the stage, and "same_file", as long as ours with the very same file; None where there is none of ours.
    """
    check(records, fewest_runs)
    rows = []
    for _, found in stages_of(records):
        medians = [statistics.median(entry["runs"]) for entry in found]
        ours, same = None, {}
        for entry, median in zip(found, medians):
            if entry["name"].startswith(OURS):
                ours = median if ours is None else ours
                same.setdefault(entry.get("file"), median)
        for entry, median in zip(found, medians):
            twin = None if entry["name"].startswith(OURS) or "file" not in entry else same.get(entry["file"])
            rows.append(dict(entry, median=median, ratio=median / ours if ours else None,
                             same_file=median / twin if twin else None))
    return rows


def best_peer(rows, stage):
    """The fastest row of a stage that is not ours, or None."""
    peers = [row for row in rows if row["stage"] == stage and not row["name"].startswith(OURS)]
    return min(peers, key=lambda row: row["median"], default=None)


def times(ratio):
    return "" if ratio is None else "%.2f" % ratio


def markdown(rows):
    """The fastest contestant of each stage that is not ours is in bold."""
    lines = ["| stage | contestant | parts | median, ms | range | weights a token | of our time | of ours, same file |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        best = best_peer(rows, row["stage"])
        name = "**%s**" % row["name"] if best is not None and row["name"] == best["name"] else row["name"]
        size = "%.1f MB" % (row["token_bytes"] / 1e6) if row.get("token_bytes") else ""
        lines.append("| %s | %s | %s | %.1f | %.1f-%.1f | %s | %s | %s |" % (
            row["stage"], name, row["parts"], row["median"] * 1e3, min(row["runs"]) * 1e3, max(row["runs"]) * 1e3,
            size, times(row["ratio"]), times(row["same_file"])))
    return "\n".join(lines) + "\n"


def program(row):
    return row["name"].split(",")[0]


def cell(row, star):
    return "" if row is None else "%.1f%s (%.2f)" % (row["median"] * 1e3, star, row["ratio"])


def summary(rows):
    """A line for each stage: ours, and of every other program its fastest contestant with "ratio" in brackets."""
    programs = list(dict.fromkeys(program(row) for row in rows if program(row) != OURS))
    lines = ["| stage, ms | %s | %s | llama.cpp, same file |" % (OURS, " | ".join(programs)),
             "| --- | --- | %s | --- |" % " | ".join("---" for _ in programs)]
    for stage, found in stages_of(rows):
        ours = next((row for row in found if program(row) == OURS), None)
        if ours is None:
            continue
        best = [min((row for row in found if program(row) == name), key=lambda row: row["median"], default=None)
                for name in programs]
        cells = [cell(row, "*" if row is not None and row["parts"] == LINEAR else "") for row in best]
        same = next((times(row["same_file"]) for row in found if row["same_file"] is not None), "")
        lines.append("| %s | %.1f | %s | %s |" % (stage, ours["median"] * 1e3, " | ".join(cells), same))
    return "\n".join(lines) + "\n\n* linear layers only\n"


def judged(aim, found, key, named=False):
    """The least of the rows found as text, and whether it reaches the aim; nothing where there is none."""
    if aim is None or not found:
        return ""
    row = min(found, key=lambda row: row[key])
    verdict = "reached" if row[key] >= aim else "**missed**"
    return "%.2f of %g%s, %s" % (row[key], aim, " (%s)" % row["name"] if named else "", verdict)


def aims(rows):
    """A line for each stage: its ratios to the best of the others, to llama.cpp, and to that on the same file."""
    lines = ["| stage | best of the others | llama.cpp | llama.cpp, same file |", "| --- | --- | --- | --- |"]
    for stage, (best_aim, llama_aim) in AIMS.items():
        peers = [row for row in rows if row["stage"] == stage and program(row) != OURS and row["ratio"] is not None]
        llama = [row for row in peers if program(row) == LLAMA]
        same = [row for row in llama if row["same_file"] is not None and stage in SAME_FILE_STAGES]
        cells = (judged(best_aim, peers, "ratio", named=True), judged(llama_aim, llama, "ratio"),
                 judged(SAME_FILE_AIM, same, "same_file"))
        if any(cells):
            lines.append("| %s | %s |" % (stage, " | ".join(cells)))
    return "\n".join(lines) + "\n"


def loads(rows):
    """Loading, and the whole way from the start of a program to its end."""
    lines = ["| contestant | load, ms | start to caption, ms | peak memory |", "| --- | --- | --- | --- |"]
    for row in rows:
        if row["stage"] == "start to caption":
            lines.append("| %s | %.0f | %.0f | %.0f MB |" % (row["name"], statistics.median(row["loads"]) * 1e3,
                                                         row["median"] * 1e3, row["peak_bytes"] / 1e6))
    return "\n".join(lines) + "\n"


def raw_lines(records):
    """Every single run, for whoever wants to judge the medians, and by which kernels where that is told."""
    return ["%s | %s | %s ms%s" % (entry["stage"], entry["name"], " ".join("%.2f" % (t * 1e3) for t in entry["runs"]),
                                   " | by " + ", ".join(entry["kernels"]) if "kernels" in entry else "")
            for entry in records]
