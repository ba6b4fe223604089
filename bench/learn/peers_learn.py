"""Times one step of Opacus beside the plain step of PyTorch, for the models that whit's example `step` races: prints JSON.

`peers_learn.py MODE MODEL` times one mode in a process of its own, so that its peak of memory is its own; without arguments all of them run.
Two threads, batch 512, Adam and loaders left out: forward, backward, clip, noise, a step of descent.
"""

import json
import resource
import subprocess
import sys
import time

BATCH, LAPS, WARM = 512, 30, 4
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


def race(mode, name):
    import torch
    from torch import nn

    torch.set_num_threads(2)
    torch.manual_seed(0)
    model, shape = build(name)
    features, labels = torch.randn(BATCH, *shape), torch.randint(0, 10, (BATCH,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    if mode != "plain":
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(features, labels), batch_size=BATCH)
        made = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=loader, criterion=criterion, noise_multiplier=1.0,
            max_grad_norm=1.0, poisson_sampling=False, grad_sample_mode=mode,
        )
        if mode == "ghost":
            model, optimizer, criterion, _ = made
        else:
            model, optimizer, _ = made
    laps = []
    for lap in range(WARM + LAPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        criterion(model(features), labels).backward()
        optimizer.step()
        if lap >= WARM:
            laps.append(time.perf_counter() - start)
    laps.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"mode": mode, "model": name, "fastest_ms": 1e3 * laps[0], "median_ms": 1e3 * laps[len(laps) // 2], "peak_mib": peak}


if len(sys.argv) == 3:
    print(json.dumps(race(*sys.argv[1:])))
else:
    rows = []
    for name in MODELS:
        for mode in MODES:
            done = subprocess.run([sys.executable, __file__, mode, name], capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"  {mode}, {name}: {rows[-1]['fastest_ms']:.1f} ms", file=sys.stderr)
    print(json.dumps(rows, indent=1))
