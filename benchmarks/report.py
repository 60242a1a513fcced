#!/usr/bin/env python3
"""Draws the page of `lanepack-sim --report DIR` from DIR/report.json: one self-contained HTML file,
and every picture as SVG and PNG.

Usage: python3 report.py DIR
"""

import html
import io
import json
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: E402

INK = "#1f2933"
MUTED = "#7b8794"
GRID = "#e4e7eb"
COLOURS = ["#9aa5b1", "#2f6f9f", "#d64545", "#2f9e6e", "#e08e2b", "#7b5ea7", "#3fa7b5", "#b5487f",
           "#5a6b2d", "#8c5a3c", "#445566", "#c2a100"]
HEAT = LinearSegmentedColormap.from_list(
    "cost", ["#2f6f9f", "#9cc3de", "#f7f7f5", "#f0b49a", "#c0392b"])

plt.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 9, "axes.edgecolor": GRID, "axes.labelcolor": INK,
    "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.grid": True, "grid.color": GRID, "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED,
    "legend.frameon": False, "svg.fonttype": "path", "svg.hashsalt": "lanepack",
    "figure.dpi": 110,
})


def colours_of(policies):
    return {policy: COLOURS[i % len(COLOURS)] for i, policy in enumerate(policies)}


def save(figure, folder, name):
    """Writes NAME.svg and NAME.png and returns the SVG for the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    figure.savefig(os.path.join(folder, name + ".png"), bbox_inches="tight", dpi=160)
    plt.close(figure)
    svg = buffer.getvalue()
    write(os.path.join(folder, name + ".svg"), svg)
    svg = svg[svg.index("<svg"):]
    # Ids are unique within a picture; the page holds several.
    svg = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'url\(#([^)]+)\)', rf'url(#{name}-\1)', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(
        r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1)


def write(path, text):
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def relative_costs(policy):
    """Rank costs by step over the mean of all shown."""
    steps = policy["rank_costs"]
    count = sum(len(step) for step in steps)
    mean = sum(sum(step) for step in steps) / count if count else 1
    return [[cost / mean if mean else 0 for cost in step] for step in steps]


def heat_maps(corpus, policies):
    chosen = [policy for policy in corpus["policies"] if policy["policy"] in policies]
    figure, axes = plt.subplots(len(chosen), 1, figsize=(9.2, 1.85 * len(chosen) + 0.4),
                                squeeze=False, sharex=True, layout="constrained")
    figure.get_layout_engine().set(hspace=0.06)
    for axis, policy in zip(axes[:, 0], chosen):
        costs = relative_costs(policy)
        ranks = len(costs[0]) if costs else 0
        image = axis.imshow([list(row) for row in zip(*costs)], aspect="auto", cmap=HEAT,
                            norm=TwoSlopeNorm(1.0, 0.0, 2.0), interpolation="nearest",
                            extent=(0, len(costs), ranks, 0), rasterized=True)
        axis.grid(False)
        wasted = sum(max(step) for step in costs)
        mean = sum(sum(step) / len(step) for step in costs)
        axis.set_title(f"{policy['policy']}: {100 * mean / wasted:.1f} % of these steps' "
                       "time is work")
        axis.set_ylabel("rank")
        if axis is not axes[-1, 0]:
            axis.tick_params(axis="x", bottom=False)
    axes[-1, 0].set_xlabel("step")
    bar = figure.colorbar(image, ax=axes[:, 0].tolist(), fraction=0.025, pad=0.015, extend="max",
                          aspect=12 * len(chosen))
    bar.set_label("cost of the rank's records / mean")
    bar.outline.set_visible(False)
    return figure


def step_times(corpus, colours):
    figure, axis = plt.subplots(figsize=(5.6, 3.2))
    for policy in corpus["policies"]:
        times = sorted(policy["step_times"])
        row = next(row for row in corpus["rows"] if row["policy"] == policy["policy"])
        # A step's time over what it would be if all ranks always had the mean work.
        ideal = row["mean_step_time"] * row["time_efficiency"]
        if not times or ideal <= 0:
            continue
        shares = [(i + 1) / len(times) for i in range(len(times))]
        axis.step([time / ideal for time in times], shares, where="post", linewidth=1.6,
                  color=colours[policy["policy"]], label=policy["policy"])
    axis.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axis.set_xlim(left=0)
    right = axis.get_xlim()[1]
    if right > 6:
        axis.set_xlim(0, 6)
    axis.set_xlabel("step time / ideal mean step")
    axis.set_ylabel("share of steps")
    axis.set_title("Step times")
    axis.legend(fontsize=7.5, loc="lower right")
    return figure


def lost(efficiency):
    """Per cent of the steps' time that ranks wait, never 0 as the axis is logarithmic."""
    return max(100 * (1 - efficiency), 0.001)


def range_of_lost(corpus):
    """One range for all curves of a corpus, so that they can be compared."""
    values = [lost(value) for name in ("over_ranks", "over_lookahead", "over_displacement")
              for line in corpus[name] for value in line["step_efficiency"]]
    return min(values) / 1.5, min(max(values) * 1.5, 110)


def curves(corpus, name, colours, title, label, show_bounds=False):
    figure, axis = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
    lines = corpus[name]
    places = list(colours)
    for line in lines:
        # Lines that coincide stay visible: other markers, and the later ones dashed.
        place = places.index(line["policy"]) if line["policy"] in places else 0
        colour = colours.get(line["policy"], INK)
        axis.plot(line["x"], [lost(value) for value in line["step_efficiency"]],
                  marker="os^Dv<>P"[place % 8], markersize=5, markerfacecolor="none",
                  linestyle=["-", "--", "-.", ":"][place % 4], linewidth=1.5, color=colour,
                  label=line["policy"])
        bounds_of_lanes = line.get("lane_total_bound", [])
        if show_bounds and bounds_of_lanes and None not in bounds_of_lanes:
            axis.plot(line["x"], [lost(value) for value in bounds_of_lanes], marker="_",
                      linestyle="none", markersize=13, color=INK, zorder=3,
                      label=f"least with the records\nof {line['policy']}'s lanes")
    axis.set_xscale("log", base=2)
    ticks = lines[0]["x"]
    axis.set_xticks(ticks)
    axis.set_xticklabels([str(tick) for tick in ticks])
    axis.set_yscale("log")
    axis.set_ylim(*range_of_lost(corpus))
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axis.minorticks_off()
    axis.set_xlabel(label)
    axis.set_ylabel("time lost (1 - step efficiency)")
    axis.set_title(title)
    axis.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.45, -0.19), ncol=2)
    return figure


def lengths(corpus):
    figure, axis = plt.subplots(figsize=(9.2, 2.9))
    # At most some fifty bars, equal on the logarithmic axis.
    first = max(1, corpus["lengths"][0][0])
    last = max(first + 1, corpus["max_tokens"])
    bars = 56
    ratio = (last / first) ** (1 / bars)
    counts = [0.0] * bars
    work = [0.0] * bars
    for low, high, records in corpus["lengths"]:
        middle = max(1.0, (low + high) / 2)
        place = 0
        edge = first * ratio
        while place + 1 < bars and middle > edge:
            place += 1
            edge *= ratio
        counts[place] += records
        work[place] += records * middle
    edges = [first * ratio ** i for i in range(bars + 1)]
    total = sum(counts) or 1
    tokens = sum(work) or 1
    axis.bar(edges[:-1], [100 * count / total for count in counts],
             width=[b - a for a, b in zip(edges, edges[1:])], align="edge", color="#2f6f9f",
             edgecolor="white", linewidth=0.5, label="records")
    axis.stairs([100 * part / tokens for part in work], edges, color="#e08e2b", linewidth=1.6,
                label="tokens")
    # Room above the bars for what the boundaries are called.
    top = axis.get_ylim()[1] * 1.3
    axis.set_ylim(0, top)
    boundary = corpus["unbalanceable_tokens"]
    if boundary:
        axis.axvline(boundary, color="#d64545", linewidth=1.2)
        axis.text(boundary, top * 0.98, "costs more than \na mean pack ", color="#d64545",
                  va="top", ha="right", fontsize=8)
    capacity = corpus["capacity_tokens"]
    axis.set_xscale("log")
    if capacity <= 1.2 * last:
        axis.axvline(capacity, color=INK, linewidth=1.2, linestyle="--")
        axis.text(capacity, top * 0.98, "capacity of a \nmicro-batch ", va="top", ha="right",
                  fontsize=8)
        axis.set_xlim(first, last * 1.25)
    else:
        # The axis ends with the records, not where none are.
        axis.set_title(f"capacity of a micro-batch: {capacity:,} tokens, beyond the axis",
                       loc="right", fontsize=8, fontweight="normal", pad=10)
        axis.set_xlim(first, last * 1.25)
    axis.set_xlabel("tokens of a record")
    axis.set_ylabel("%")
    axis.set_title("Record lengths and the two boundaries", pad=10)
    axis.legend(fontsize=8, loc="upper left")
    return figure


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def table(corpus, colours):
    head = ["policy", "step efficiency", "time efficiency", "step time / best baseline",
            "in-step variability less", "displacement", "buffered records", "bin fill",
            "tokens of the heaviest step", "weight of the longest 1 %"]
    rows = []
    for row in corpus["rows"]:
        relative = row["relative_step_time"]
        name = html.escape(row["policy"])
        if row["tuned_capacity_tokens"]:
            name += f' <small>at {row["tuned_capacity_tokens"]:,} tokens</small>'
        cells = [
            f'<th><i style="background:{colours[row["policy"]]}"></i>{name}</th>',
            f'<td><b>{percent(row["step_efficiency"], 2)}</b></td>',
            f'<td>{percent(row["time_efficiency"], 2)}</td>',
            f'<td>{"–" if relative is None else f"{relative:.3f}"}</td>',
            f'<td>{percent(row["within_step_cv_reduction"])}</td>',
            f'<td>{row["max_displacement_steps"]} steps</td>',
            f'<td>{row["peak_buffered_records_per_rank"]:,}</td>',
            f'<td>{percent(row["bin_fill"])}</td>',
            f'<td>{row["step_tokens_max_ratio"]:.2f} x mean</td>',
            f'<td>{row["token_weight_p99"]:.2f}</td>',
        ]
        rows.append("<tr>" + "".join(cells) + "</tr>")
    header = "".join(f"<th>{name}</th>" for name in head)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def bounds(corpus):
    plain = [row for row in corpus["rows"] if row["policy"] == "sequential"]
    if not plain:
        return ""
    row = plain[0]
    return (f'<p>What is left to gain: with the same records in every step no assignment to ranks '
            f'is better than <b>{percent(row["step_bound"])}</b>, with those of every '
            f'{row["lookahead"]} steps together <b>{percent(row["window_bound"])}</b>. Above the '
            f'second only a policy that holds heavy records back for longer, or one for memory and '
            f'outliers, can help.</p>')


def summary(corpus):
    own = [row for row in corpus["rows"]
           if row["policy"] != "sequential" and not row["tuned_capacity_tokens"]]
    plain = next((row for row in corpus["rows"] if row["policy"] == "sequential"), None)
    if not own or plain is None:
        return ""
    best = max(own, key=lambda row: row["time_efficiency"])
    gain = best["time_efficiency"] / plain["time_efficiency"]
    return (f'<p class="lead"><b>{html.escape(best["policy"])}</b> makes '
            f'{percent(best["time_efficiency"])} of the time work, <code>sequential</code> '
            f'{percent(plain["time_efficiency"])}: steps are <b>{gain:.2f} times</b> as fast, with '
            "the same records per step and no message between ranks.</p>")


def section(corpus, folder, number):
    policies = [policy["policy"] for policy in corpus["policies"]]
    colours = colours_of(policies)
    prefix = f"c{number}"
    own = [row["policy"] for row in corpus["rows"] if not row["tuned_capacity_tokens"]]
    pictures = [
        save(heat_maps(corpus, own or policies), folder, prefix + "-ranks"),
        save(step_times(corpus, colours), folder, prefix + "-steps"),
        save(curves(corpus, "over_ranks", colours, "Against ranks", "ranks"), folder,
             prefix + "-over-ranks"),
        save(curves(corpus, "over_lookahead", colours, "Against lookahead",
                    "steps of lookahead"), folder, prefix + "-over-lookahead"),
    ]
    displacement = ""
    if corpus["over_displacement"]:
        displacement = save(curves(corpus, "over_displacement", colours,
                                   "Against the displacement bound",
                                   "most steps that a record is held back", show_bounds=True),
                            folder, prefix + "-over-displacement")
    histogram = save(lengths(corpus), folder, prefix + "-lengths")
    facts = (f'{corpus["records"]:,} records, {corpus["tokens"]:,} tokens, the longest '
             f'{corpus["max_tokens"]:,}; {corpus["infeasible_records"]:,} above the capacity, '
             f'{corpus["unbalanceable_records"]:,} that cost more than a mean pack')
    return f"""
<section>
<h2>{html.escape(corpus["corpus"])}</h2>
<p class="facts">{facts}</p>
{summary(corpus)}
{table(corpus, colours)}
{bounds(corpus)}
<figure>{pictures[0]}<figcaption>Every column is a step, every row a rank. A step lasts as long as
its reddest cell: uniform columns waste nothing, whatever their colour.</figcaption></figure>
<div class="grid"><figure>{pictures[1]}</figure><figure>{pictures[2]}</figure>
<figure>{pictures[3]}</figure><figure>{displacement}</figure></div>
<p class="facts">{notes_on_curves(corpus)}</p>
<figure>{histogram}<figcaption>Records right of the red line cost more than a pack's fair share:
they can only be aligned, not balanced. Those right of the dashed line fit no
micro-batch.</figcaption></figure>
</section>"""


def notes_on_curves(corpus):
    """How many steps the points stand for, and what sets a floor under them."""
    text = "Lower is better. "
    counts = {}
    for line in corpus["over_ranks"]:
        for ranks, steps, warmup in zip(line["x"], line.get("steps", []), line.get("warmup", [])):
            counts.setdefault(ranks, (steps, set()))[1].add(warmup)
    if len({steps for steps, _ in counts.values()}) > 1:
        text += ("With more ranks a step averages over more of them, and fewer are simulated: "
                 + ", ".join(f"{steps:,} steps at {ranks:,} ranks (after "
                             + " or ".join(f"{warmup:,}" for warmup in sorted(warmups)) + ")"
                             for ranks, (steps, warmups) in counts.items()) + ". ")
        if any(len(warmups) > 1 for _, warmups in counts.values()):
            text += ("The shorter warm-up is that of policies that remember no more than a window. ")
    if any(value is not None for line in corpus["over_displacement"]
           for value in line.get("lane_total_bound", [])):
        text += ("The bars against the displacement bound: the least that can be lost when every "
                 "lane keeps the records that it delivered in the measured steps. A policy on its "
                 "bar has nothing left to align; what remains is how much more the heaviest lane "
                 "delivered, which shrinks with more steps and differs a little from bound to bound, as "
                 "other records then fall into those steps.")
    return text


STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #f5f7fa; margin: 0; }
main { max-width: 1080px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 0; }
section { background: white; border-radius: 10px; padding: 1.6rem 1.8rem; margin: 1.6rem 0;
          box-shadow: 0 1px 3px rgba(31, 41, 51, .09); }
.facts, header p, figcaption, small { color: #616e7c; }
.lead { font-size: 1.05rem; }
table { border-collapse: collapse; width: 100%; font-size: .82rem; margin: 1rem 0; }
th, td { padding: .38rem .5rem; text-align: right; border-bottom: 1px solid #e4e7eb; }
thead th { color: #616e7c; font-weight: 600; vertical-align: bottom; }
tbody th, thead th:first-child { text-align: left; font-weight: 600; white-space: nowrap; }
tbody th i { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px;
             margin-right: .45rem; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; }
figcaption { font-size: .85rem; }
.grid { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.4rem; }
@media (max-width: 760px) { .grid { grid-template-columns: 1fr; } table { display: block;
  overflow-x: auto; } }
"""


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) == 2 else 2
    folder = sys.argv[1]
    try:
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as failure:
        print(f"report.py: {failure}", file=sys.stderr)
        return 3
    sections = "".join(section(corpus, folder, number)
                       for number, corpus in enumerate(data["corpora"]))
    conditions = (f'{data["ranks"]} ranks x {data["records_per_rank"]} records a step, '
                  f'{data["lookahead"]} steps of lookahead, {data["steps"]} steps measured after '
                  f'{data["warmup"]}, seed {data["seed"]}, ranks wait for each other '
                  + ("in every micro-batch" if data["sync"] == "microbatch" else "once a step"))
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What lanepack would gain</title><style>{STYLE}</style></head>
<body><main><header><h1>What lanepack would gain</h1><p>{conditions}. Simulated by lanepack
{html.escape(data["version"])}; costs are estimates, not seconds.</p></header>{sections}
<p class="facts">Step efficiency: mean over ranks over the slowest rank, of cost, over all steps.
Time efficiency: with micro-batches, their overhead and where ranks wait. In-step variability: of a
rank's cost around the step's mean, against <code>sequential</code>. Weight of the longest 1 %: of
their tokens in a loss that is divided by the step's tokens, over the mean of all.</p>
</main></body></html>
"""
    write(os.path.join(folder, "index.html"), page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
