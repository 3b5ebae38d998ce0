#!/bin/sh
# The plugin's way to the stub: launch.sh <plugin data folder> <event>
#
# A plugin cannot know where a suitable Python is. In this order: the virtual environment that `memory init` made in
# the plugin's data folder (it survives updates), the one of a source checkout, then the newest real interpreter on
# PATH. Shims (pyenv, asdf) are passed over: they are shell scripts that cost more than the whole hook. Without a
# Python nothing is done; a hook never fails a turn.
here=${0%/*}
data=$1
event=$2
for python in "$data/venv/bin/python" "$here/../.venv/bin/python"; do
    if [ -x "$python" ]; then
        exec "$python" -I -S "$here/stub.py" "$event"
    fi
done
IFS=:
for name in python3.13 python3.12 python3.11 python3; do
    for folder in $PATH; do
        case $folder in
            */shims | */shims/ | '') continue ;;
            /*) ;;
            *) continue ;;
        esac
        if [ -x "$folder/$name" ]; then
            exec "$folder/$name" -I -S "$here/stub.py" "$event"
        fi
    done
done
echo "memoryvault: no Python 3.11 or newer found; nothing was done" >&2
exit 0
