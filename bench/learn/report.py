"""One table of what a private step costs, beside what is required: `report.py FOLDER [--json]`."""

import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
whit = json.loads((folder / "whit.json").read_text())
peers = json.loads((folder / "peers.json").read_text())
softmax = json.loads((folder / "softmax.json").read_text())

# At most so many times the plain step, by model and rows a bag; at least so many times as fast as the best mode of Opacus.
MOST = {("perceptron", 1): 1.4, ("perceptron", 10): 1.5, ("convolutional", 1): 1.5, ("convolutional", 10): 1.8}
LEAST = 1.5
# The large job: seconds and MiB.
SECONDS, MEMORY = 3600, 4096

rows = []
for found in whit:
    name, size = found["model"].split(",")[0].split(" ")[0], found["rows_per_bag"]
    plain, private = found["plain_ms"]["fastest"], found["private_ms"]["fastest"]
    most = MOST[name, size]
    bags = "rows" if size == 1 else f"bags of {size} rows"
    rows.append((f"{name}, {bags}: time over the plain step", private, plain, private / plain, f"≤ {most}", private / plain <= most))
    if size == 1:
        modes = [peer for peer in peers if peer["model"] == name and peer["mode"] != "plain"]
        best = min(modes, key=lambda peer: peer["fastest_ms"])
        ratio = best["fastest_ms"] / private
        rows.append((f"{name}: speed over opacus ({best['mode']})", private, best["fastest_ms"], ratio, f"≥ {LEAST}", ratio >= LEAST))
        torch = next(peer for peer in peers if peer["model"] == name and peer["mode"] == "plain")
        rows.append((f"{name}: plain step, speed over PyTorch", plain, torch["fastest_ms"], torch["fastest_ms"] / plain, "", None))

if "--json" in sys.argv:
    print(json.dumps({"whit": whit, "peers": peers, "softmax": softmax}, indent=1))
else:
    width = max(len(row[0]) for row in rows)
    print(f"{'question':{width}}  {'whit':>9}  {'peer':>9}  {'ratio':>5}  {'required':>8}  met")
    for name, ours, theirs, ratio, required, met in rows:
        word = "" if met is None else "yes" if met else "NO"
        print(f"{name:{width}}  {ours:6.1f} ms  {theirs:6.1f} ms  {ratio:5.2f}  {required:>8}  {word:>3}")
    peak = max(found["peak_mib"] for found in whit if "peak_mib" in found) if any("peak_mib" in f for f in whit) else None
    for peer in peers:
        print(f"memory at its peak, {peer['model']}, {peer['mode']}: {peer['peak_mib']:.0f} MiB")
    if peak:
        print(f"memory at its peak, whit, all of them in one process: {peak:.0f} MiB")
    seconds, memory, step = softmax["of_40000_steps_s"], softmax["peak_mib"], softmax["step_ms"]
    print(
        f"softmax, 40,000 steps: {seconds:.0f} s by the mean of {softmax['steps']} steps ({step['mean']:.1f} ms; fastest {step['fastest']:.1f}), "
        f"required < {SECONDS} s: {'yes' if seconds < SECONDS else 'NO'}"
    )
    if memory is not None:
        print(f"softmax, memory at its peak: {memory:.0f} MiB, required < {MEMORY} MiB: {'yes' if memory < MEMORY else 'NO'}")
