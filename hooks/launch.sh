#!/bin/sh
# The plugin's way to the installed package: launch.sh hook <event> | launch.sh memory <arguments>
#
# A plugin is copied to a place of the host's own and cannot know where the package and its Python are. `memory init`
# leaves both in a file of the state folder. Without one: the virtual environment of a source checkout, then the newest
# real interpreter on PATH, with the plugin's own copy of the hooks. Shims (pyenv, asdf) are passed over: they are shell
# scripts that cost more than the whole hook. A hook that finds no Python does nothing; it never fails a turn.
here=${0%/*}
what=$1
shift

# A repository may set variables of a session: what it names in its own work tree is not run.
try_named() {
    place=$(cd -P "$1" 2>/dev/null && pwd -P) || return 0
    above=$place
    while [ -n "$above" ]; do
        [ ! -e "$above/.git" ] || return 0
        above=${above%/*}
    done
    try_installation "$place/$2"
}

try_installation() {
    [ -O "$1" ] && [ -f "$1" ] || return 0
    { IFS= read -r python && IFS= read -r stub; } <"$1" || return 0
    [ -x "$python" ] && [ -f "$stub" ] || return 0
    found=$python
    folder=${stub%/*}
}

found=
folder=$here
case $MEMORY_STATE_DIR in
    '')
        if [ -n "$XDG_STATE_HOME" ]; then
            try_named "$XDG_STATE_HOME" memoryvault/run/installation
        else
            try_installation "$HOME/.local/state/memoryvault/run/installation"
        fi
        [ -n "$found" ] || try_installation "$HOME/Library/Application Support/memoryvault/state/run/installation"
        ;;
    '~/'*) try_named "$HOME/${MEMORY_STATE_DIR#'~/'}" run/installation ;;
    /*) try_named "$MEMORY_STATE_DIR" run/installation ;;
esac
if [ -z "$found" ] && [ -x "$here/../.venv/bin/python" ]; then
    found=$here/../.venv/bin/python
fi

if [ "$what" = memory ]; then
    [ -z "$found" ] || exec "$found" -I -m memoryvault "$@"
    command -v memory >/dev/null && exec memory "$@"
    echo "memoryvault: the package is not installed: install its wheel (docs/how-to/install.md in its repository), then memory init" >&2
    exit 1
fi
# No exec: an interpreter that is there and can't run (another machine's, a missing library) must not fail the turn.
if [ -n "$found" ]; then
    "$found" -I -S "$folder/stub.py" "$@"
    exit 0
fi
IFS=:
for name in python3.15 python3.14 python3.13 python3.12 python3.11 python3; do
    for place in $PATH; do
        case $place in
            */shims | */shims/ | '') continue ;;
            /*) ;;
            *) continue ;;
        esac
        if [ -x "$place/$name" ]; then
            unset IFS
            "$place/$name" -I -S "$here/stub.py" "$@"
            exit 0
        fi
    done
done
echo "memoryvault: no Python 3.11 or newer found; nothing was done" >&2
exit 0
