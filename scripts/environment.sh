# Sourced by the scripts beside it: finds a Python and makes virtual environments in the checkout.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The interpreters that may be there, the likely ones first. A pyenv shim may be among them and fail.
python_candidates() {
    local version
    for version in "$@"; do
        type -aP "python$version"
    done
    type -aP python3
    type -aP python
    for version in "$@"; do
        ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python 2>/dev/null
    done
    return 0
}

# find_python VERSION…: prints the first interpreter of one of these versions that can make an environment.
find_python() {
    local candidate found without_venv=""
    while read -r candidate; do
        found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        case " $* " in *" $found "*) ;; *) continue ;; esac
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
        without_venv=$found
    done < <(python_candidates "$@")
    if [ -n "$without_venv" ]; then
        fail "Python $without_venv is here, but it cannot make virtual environments." \
            "On Debian: apt-get install python$without_venv-venv"
    fi
    fail "no Python $(printf '%s' "$1"; shift; printf ' or %s' "$@") was found. Debian 12: apt-get install python3 python3-venv;" \
        "macOS: brew install python@3.12; elsewhere: https://www.python.org/downloads/"
}

# make_environment NAME PYTHON COMMAND…: a virtual environment .venvs/NAME, filled by COMMAND, which is called with
# the environment's Python as $python. It is reused until the interpreter, the command or the project's requirements change.
make_environment() {
    local name=$1 base=$2 folder current
    shift 2
    folder=$checkout/.venvs/$name
    python=$folder/bin/python
    current=$("$base" --version; printf '%s\n' "$base" "$*"; cat "$checkout/setup.cfg" "$checkout/pyproject.toml" "$checkout"/scripts/install)
    if [ -x "$python" ] && [ "$(cat "$folder/current" 2>/dev/null)" = "$current" ]; then
        say "Environment .venvs/$name is current."
        return 0
    fi
    say "Making the environment .venvs/$name with $("$base" --version) (once; it takes a minute or two) …"
    rm -rf "$folder"
    "$base" -m venv "$folder" || fail "the environment could not be made in $folder"
    (cd "$checkout" && "$@") || fail "the installation into $folder failed; the lines above say why"
    printf '%s\n' "$current" > "$folder/current"
}
