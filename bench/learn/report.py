"""One table of what a private step costs, beside what is required: `report.py FOLDER [--json]`.

Times are of steps one right after the other, whole time over laps, and of the best of all rounds, for every column alike.
"""

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

laps = {found["laps"] for found in whit + peers}
assert len(laps) == 1, f"all columns have the same laps, and these are {sorted(laps)}"


def best(of, **wanted):
    """The best round of one column: its time, and its peak of memory."""
    rounds = [found for found in of if all(found[key] == value for key, value in wanted.items())]
    memory = [found["peak_mib"] for found in rounds if found["peak_mib"] is not None]
    return min(found["mean_ms"] for found in rounds), max(memory, default=None)


rows, peaks = [], []
for (name, size), most in MOST.items():
    plain, plain_peak = best(whit, model=name, rows_per_bag=size, mode="plain")
    private, private_peak = best(whit, model=name, rows_per_bag=size, mode="private")
    bags = "rows" if size == 1 else f"bags of {size} rows"
    rows.append((f"{name}, {bags}: time over the plain step", private, plain, private / plain, f"≤ {most}", private / plain <= most))
    peaks += [(f"{name}, {bags}, whit, plain", plain_peak), (f"{name}, {bags}, whit, private", private_peak)]
    if size == 1:
        modes = {mode: best(peers, model=name, mode=mode) for mode in ["ghost", "hooks", "plain"]}
        peaks += [(f"{name}, {'PyTorch' if mode == 'plain' else 'opacus'}, {mode}", peak) for mode, (_, peak) in modes.items()]
        torch, _ = modes.pop("plain")
        fastest = min(modes, key=lambda mode: modes[mode][0])
        ratio = modes[fastest][0] / private
        rows.append((f"{name}: speed over opacus ({fastest})", private, modes[fastest][0], ratio, f"≥ {LEAST}", ratio >= LEAST))
        rows.append((f"{name}: plain step, speed over PyTorch", plain, torch, torch / plain, "", None))

if "--json" in sys.argv:
    print(json.dumps({"whit": whit, "peers": peers, "softmax": softmax}, indent=1))
else:
    width = max(len(row[0]) for row in rows)
    print(f"steps one right after the other, noise and its refill inside, {laps.pop()} laps for each, best of all rounds\n")
    print(f"{'question':{width}}  {'whit':>9}  {'peer':>9}  {'ratio':>5}  {'required':>8}  met")
    for name, ours, theirs, ratio, required, met in rows:
        word = "" if met is None else "yes" if met else "NO"
        print(f"{name:{width}}  {ours:6.1f} ms  {theirs:6.1f} ms  {ratio:5.2f}  {required:>8}  {word:>3}")
    print("\nmemory at its peak, less what the process has before rows and model (the peers: once they are imported)")
    for name, peak in peaks:
        if peak is not None:
            print(f"  {name}: {peak:.0f} MiB")
    seconds, memory, step = softmax["of_40000_steps_s"], softmax["peak_mib"], softmax["step_ms"]
    print(
        f"\nsoftmax, 40,000 steps: {seconds:.0f} s by the mean of {softmax['steps']} steps ({step['mean']:.1f} ms; fastest {step['fastest']:.1f}), "
        f"required < {SECONDS} s: {'yes' if seconds < SECONDS else 'NO'}"
    )
    if memory is not None:
        print(f"softmax, memory at its peak: {memory:.0f} MiB, required < {MEMORY} MiB: {'yes' if memory < MEMORY else 'NO'}")
