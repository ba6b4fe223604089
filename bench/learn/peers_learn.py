"""Times one step of Opacus beside the plain step of PyTorch, for the models that whit's example `step` races: prints JSON.

`peers_learn.py LAPS ROUNDS` times every mode in processes of their own, in turns, so that each has its own peak of memory;
`peers_learn.py LAPS - MODE MODEL` is one of them. Steps are taken one right after the other: forward, backward, clip, noise, a step of descent.
Two threads, batch 512, plain descent; loaders and the draw of a batch are left out, which whit's steps have inside.
Memory is the peak less what the process has once everything is imported.
"""

import json
import resource
import subprocess
import sys
import time

BATCH, WARM = 512, 5
MODES = ["plain", "ghost", "hooks"]
MODELS = ["perceptron", "convolutional"]


def build(name):
    from torch import nn

    if name == "perceptron":
        layers = [nn.Linear(600, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10)]
        return nn.Sequential(*layers), (600,)
    layers = [
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
    ]
    return nn.Sequential(*layers), (1, 28, 28)


def memory(name):
    """A line of what the system tells of this process, in MiB: VmRSS is memory now, VmHWM at its peak."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def imported():
    """What the process has now, with the peak set back to it where the system can."""
    try:
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
    except OSError:
        pass
    return memory("VmRSS")


def race(laps, mode, name):
    import torch
    from torch import nn

    if mode != "plain":
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(2)
    torch.manual_seed(0)
    before = imported()
    model, shape = build(name)
    features, labels = torch.randn(BATCH, *shape), torch.randint(0, 10, (BATCH,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    if mode != "plain":
        loader = DataLoader(TensorDataset(features, labels), batch_size=BATCH)
        made = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=loader, criterion=criterion, noise_multiplier=1.0,
            max_grad_norm=1.0, poisson_sampling=False, grad_sample_mode=mode,
        )
        if mode == "ghost":
            model, optimizer, criterion, _ = made
        else:
            model, optimizer, _ = made

    def step():
        optimizer.zero_grad()
        criterion(model(features), labels).backward()
        optimizer.step()

    for _ in range(WARM):
        step()
    each = []
    start = last = time.perf_counter()
    for _ in range(laps):
        step()
        now = time.perf_counter()
        each.append(now - last)
        last = now
    mean = (last - start) / laps
    each.sort()
    return {
        "mode": mode, "model": name, "laps": laps, "mean_ms": 1e3 * mean, "median_ms": 1e3 * each[laps // 2], "fastest_ms": 1e3 * each[0],
        "peak_mib": memory("VmHWM") - before, "imported_mib": before,
    }


laps, rounds = int(sys.argv[1]), sys.argv[2]
if len(sys.argv) == 5:
    print(json.dumps(race(laps, *sys.argv[3:])))
else:
    rows = []
    for _ in range(int(rounds)):
        for name in MODELS:
            for mode in MODES:
                call = [sys.executable, __file__, str(laps), "-", mode, name]
                done = subprocess.run(call, capture_output=True, text=True, check=True)
                rows.append(json.loads(done.stdout.splitlines()[-1]))
                print(f"  {mode}, {name}: {rows[-1]['mean_ms']:.1f} ms", file=sys.stderr)
    print(json.dumps(rows, indent=1))
