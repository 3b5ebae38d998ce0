#!/bin/sh
# The plugin's way to the installed package: launch.sh hook <event> | launch.sh memory <arguments>
#
# A plugin is copied to a place of the host's own and cannot know where the package and its Python are. `memory init`
# leaves both in a file of the state folder. A hook that does not find them does nothing; it never fails a turn.
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
}

found=
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
if [ "$what" = memory ]; then
    [ -z "$found" ] || exec "$found" -I -m memoryvault "$@"
    command -v memory >/dev/null && exec memory "$@"
    echo "memoryvault: the package is not installed: install its wheel (docs/how-to/install.md in its repository), then memory init" >&2
    exit 1
fi
if [ -z "$found" ]; then
    echo "memoryvault: the package is not installed, or memory init was not run; nothing was done" >&2
    exit 0
fi
# No exec: an interpreter that is there and can't run (another machine's, a missing library) must not fail the turn.
"$found" -I -S "$stub" "$@"
exit 0
