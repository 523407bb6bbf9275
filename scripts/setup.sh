#!/usr/bin/env bash
# Installs what a task needs and this machine lacks, from Debian's packages: setup.sh build|lint|test
# Says what it does; does nothing where nothing is missing.
set -euo pipefail

PATH=$PATH:/usr/sbin # where daemons are
task=${1:?usage: setup.sh build|lint|test}
missing=()

has() { command -v "$1" >/dev/null 2>&1; }
needs() { # needs COMMAND PACKAGE...
  local command=$1
  shift
  has "$command" || missing+=("$@")
}

if ! has cargo; then
  echo "cargo is not here: install Rust 1.90 or newer with rustup, then try again" >&2
  exit 1
fi

# aws-lc and SQLite are compiled from C.
needs cc gcc libc6-dev
case $task in
  build) ;;
  lint | test)
    # The development tools come as Python packages that carry the program.
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3 python3-venv)
    ;;&
  lint) ;;
  test)
    needs c++ g++ # libFuzzer
    needs openssl openssl
    needs strace strace
    needs ip iproute2 # a network of its own for a test
    # programs that the interop tests meet
    needs curl curl
    needs haproxy haproxy
    needs nginx nginx
    needs stunnel4 stunnel4
    needs sslscan sslscan
    needs testssl testssl.sh
    if ! has go; then
      echo "go is not here: the interop tests need Go 1.24 or newer from your distribution or the Go project" >&2
      exit 1
    fi
    ;;
  *)
    echo "unknown task: $task; known: build, lint, test" >&2
    exit 2
    ;;
esac

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if ! has apt-get; then
  echo "missing on this machine, and there is no apt-get to install it: ${missing[*]}" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  has sudo || { echo "missing on this machine: ${missing[*]}; install it as root" >&2; exit 1; }
  as_root=(sudo)
fi
# The tests start servers of their own: those that come with the packages are not started.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
echo "installing with apt-get: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
# Nor are they to start with the machine.
for service in haproxy nginx; do
  case " ${missing[*]} " in
    *" $service "*) ! has systemctl || "${as_root[@]}" systemctl --quiet disable "$service" ;;
  esac
done
