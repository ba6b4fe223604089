# Installs the peers that live in Python into bench/.venv, where they are not there yet. Sourced by the scripts that run them.
venv="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/.venv"
requirements="$(dirname "$venv")/requirements.txt"
if ! cmp -s "$requirements" "$venv/installed.txt"; then
    echo "installing the peers into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
    cp "$requirements" "$venv/installed.txt"
fi
