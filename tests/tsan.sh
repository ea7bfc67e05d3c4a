#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs the tests of the element and of the engine's threads under ThreadSanitizer, and ends with
# "N passed, N failed".
#
#   bash tests/tsan.sh [TEST...]
#
# ThreadSanitizer only understands what it has compiled: with Debian's GLib it takes a correct GMutex
# for a race. So GLib, GStreamer and the plugins that the tests play with are built with it first, from
# the sources of the Debian packages that are installed here. docs/testing.md says what this needs.
#
# TSAN_CACHE is where they are kept from one run to the next (default: build-tsan/deps), TSAN_STORM how
# many changes of state, seeks and settings are made at random in each mode (default: 2000), TSAN_CAPTIONS
# how many captions each stream makes where turns are compared (default: 4).
set -u

cd "$(dirname "$0")/.." || exit 1
. tests/lib/packages.sh
. tests/lib/results.sh
exec </dev/null
export CI=${CI:-true} LC_ALL=C.UTF-8

build=$PWD/build-tsan
cache=${TSAN_CACHE:-$build/deps}
mkdir -p "$build" "$cache" || exit 1
cache=$(cd "$cache" && pwd)
prefix=$cache/prefix
jobs=${TSAN_JOBS:-$(nproc)}
# What is built here is found first by all that follows.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PATH=$prefix/bin:$PATH

# ---- Sources ------------------------------------------------------------------------------------

# apt with the sources of the system's own Debian archives, and lists of its own: nothing of the
# system's is changed. Where an archive and a second one of it have the same version, the first serves.
apt_sources () {
  local tool=$1

  shift
  "$tool" -o Dir::State::lists="$cache/apt/lists" -o Dir::Etc::sourcelist="$cache/apt/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root "$@"
}

prepare_apt () {
  mkdir -p "$cache/apt/lists/partial"
  apt-get indextargets --format '$(ORIGIN)|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' | sed -n 's/^Debian|//p' | awk '!seen[$0]++' >"$cache/apt/sources.list"
  apt_sources apt-get -qq update
}

# The versions of a source package, that of an installed binary package of it first:
# source_versions SOURCE BINARY
source_versions () {
  {
    dpkg-query -W -f '${source:Version}\n' "$2"
    apt_sources apt-cache showsrc "$1" | sed -n 's/^Version: //p' | sort -rV
  } | awk '!seen[$0]++'
}

# Unpacks a source package to $cache/SOURCE. A mirror may no longer have what is installed; then
# another version of the same release is as good: fetch SOURCE BINARY
fetch () {
  local version

  [ ! -d "$cache/$1" ] || return 0
  [ -f "$cache/apt/sources.list" ] || prepare_apt || return 1
  rm -rf "$cache/fetch" && mkdir "$cache/fetch"
  for version in $(source_versions "$1" "$2"); do
    (cd "$cache/fetch" && apt_sources apt-get -qq source "$1=$version") >"$cache/fetch.log" 2>&1 || continue
    echo "$1 $version"
    mv "$cache/fetch/$1"-*/ "$cache/$1" && rm -rf "$cache/fetch"
    return
  done
  cat "$cache/fetch.log"
  return 1
}

# ---- Building -----------------------------------------------------------------------------------

# Of -Doptions those that a source tree knows; they differ between releases.
known_options () {
  local tree=$1 option name

  shift
  for option in "$@"; do
    name=${option#-D}
    grep -qsF "option('${name%%=*}'," "$tree"/meson_options.txt "$tree"/meson.options && echo "$option"
  done
}

# Builds and installs a fetched source: build SOURCE OPTION...
build_dependency () {
  local name=$1 tree=$cache/$1 since=$SECONDS

  shift
  [ ! -f "$cache/$name.done" ] || return 0
  {
    meson setup "$tree/build-tsan" "$tree" --wrap-mode=nofallback --prefix="$prefix" --libdir=lib \
      -Dbuildtype=debug -Doptimization=1 -Dauto_features=disabled -Db_sanitize=thread -Db_lundef=false \
      $(known_options "$tree" "$@") \
      && ninja -C "$tree/build-tsan" -j "$jobs" && meson install -C "$tree/build-tsan"
  } >"$cache/$name.log" 2>&1 || {
    tail -n 40 "$cache/$name.log"
    return 1
  }
  touch "$cache/$name.done"
  printf '%s: built in %d s\n' "$name" $((SECONDS - since))
}

build_glib () {
  fetch glib2.0 libglib2.0-dev || return 1
  # On x86 the bit lock is written in assembly, which ThreadSanitizer does not see; the same file has
  # it with atomic operations for every other processor.
  sed -i '/^ *# *define USE_ASM_GOTO/d' "$cache/glib2.0/glib/gbitlock.c" || return 1
  # A GMutex of its own making is a number that changes with atomic operations. One made of a pthread_mutex_t
  # is known for a lock, so that the order in which locks are taken can be watched. (Whoever comes second
  # to make one reads the pointer without an atomic operation.)
  sed -i -e '/^#define USE_NATIVE_MUTEX/d' -e 's/\<impl = \([a-z_]*\)->p;/impl = g_atomic_pointer_get (\&\1->p);/' \
    "$cache/glib2.0/glib/gthread-posix.c" || return 1
  build_dependency glib2.0 -Dtests=false -Dxattr=false -Dbsymbolic_functions=false -Dman=false \
    -Dman-pages=disabled -Ddocumentation=false -Dintrospection=disabled
}

# Pango reads fonts in a thread of its own; this library has atomic operations of its own.
build_fontconfig () {
  fetch fontconfig libfontconfig1 || return 1
  build_dependency fontconfig -Ddoc=disabled -Dtests=disabled -Dtools=disabled \
    -Dcache-build=disabled -Dnls=disabled
}

build_gstreamer () {
  fetch gstreamer1.0 libgstreamer1.0-dev || return 1
  build_dependency gstreamer1.0 -Dcheck=enabled -Dptp-helper=disabled \
    -Dptp-helper-permissions=none
}

build_plugins () {
  fetch gst-plugins-base1.0 libgstreamer-plugins-base1.0-dev || return 1
  build_dependency gst-plugins-base1.0 -Dapp=enabled -Dpango=enabled -Dtypefind=enabled \
    -Dvideoconvertscale=enabled -Dvideorate=enabled -Dvideotestsrc=enabled || return 1
  fetch gst-plugins-good1.0 gstreamer1.0-plugins-good || return 1
  build_dependency gst-plugins-good1.0 -Disomp4=enabled -Djpeg=enabled -Dmatroska=enabled
}

build_libraries () {
  build_glib && build_fontconfig && build_gstreamer && build_plugins
}

# ---- Proof --------------------------------------------------------------------------------------

# What the tests and the proof run with: the libraries and plugins that were built here, and no others.
use_libraries () {
  export LD_LIBRARY_PATH=$prefix/lib GST_PLUGIN_SYSTEM_PATH_1_0=$prefix/lib/gstreamer-1.0
  export GST_PLUGIN_SCANNER_1_0=$prefix/libexec/gstreamer-1.0/gst-plugin-scanner G_SLICE=always-malloc
}

# Whether a program failed is told by its reports, not by its exit code: those that say nothing about this
# project do not count.
tsan_options () {
  echo "halt_on_error=0:exitcode=0:history_size=7:detect_deadlocks=1:second_deadlock_stack=1:print_suppressions=0:suppressions=$PWD/tests/lib/tsan.supp"
}

# Runs part of the proof; its reports that count: proof_reports WHAT
proof_reports () {
  TSAN_OPTIONS=$(tsan_options) "$build/proof" "$1" >"$build/proof.log" 2>&1 \
    || { cat "$build/proof.log"; echo "it ended badly: $1"; }
  python3 tests/lib/tsan-reports.py "$build/proof.log"
}

# Whether the program ends well and without a report: silent WHAT
silent () {
  local found

  found=$(proof_reports "$1")
  [ -z "$found" ] && return
  printf '%s\n' "$found"
  echo "ThreadSanitizer does not take this for what it is: $1"
  return 1
}

# reported WHAT KIND
reported () {
  proof_reports "$1" | grep -q "ThreadSanitizer: $2" && return
  cat "$build/proof.log"
  echo "ThreadSanitizer does not report this: $1"
  return 1
}

prove () {
  gcc -fsanitize=thread -O1 -g tests/lib/tsan-proof.c -o "$build/proof" \
    $(pkg-config --cflags --libs gstreamer-1.0) || return 1
  export GST_REGISTRY=$build/registry.bin
  (use_libraries && silent correct && silent pipeline && reported race 'data race' \
    && reported order 'lock-order-inversion')
}

# ---- Tests --------------------------------------------------------------------------------------

# The plugin and the programs of the tests below; the rest of the project would take much longer.
build_tests () {
  [ -f "$build/project/build.ninja" ] \
    || meson setup "$build/project" -Dwerror=true -Dbuildtype=debug -Doptimization=1 \
      -Db_sanitize=thread -Db_lundef=false -Dexamples=false -Dtools=false || return 1
  # Which tests there are may have changed since the last time.
  ninja -C "$build/project" build.ninja >/dev/null || return 1
  ninja -C "$build/project" -j "$jobs" gst-plugin/libgstvlmcaption.so \
    $(ninja -C "$build/project" -t targets rule c_LINKER \
      | grep -E '^tests/(element/|engine/test-(runtime|team|model|session.*)$)')
}

# The element's tests that are programs of this project, not Python, and those of the engine's threads.
threaded_tests () {
  meson test -C "$build/project" --list 2>/dev/null | sed -n 's/^.* \/ //p' \
    | grep -E '^(element-|(runtime|team|model)$|session-)' | grep -vE '^element-(gi|inspect|pipelines|stills)$'
}

# The plugins as a list for LD_PRELOAD. The names of functions are looked up in what is loaded when the
# first report is made; in a plugin that is loaded later a report would have none, and match nothing in
# tsan.supp.
plugins () {
  local list=("$prefix"/lib/gstreamer-1.0/*.so)

  (IFS=: && echo "${list[*]}")
}

# One line for each place of a report that counts, and how often it was reported.
list_reports () {
  find "$build/reports" -type f -exec python3 tests/lib/tsan-reports.py {} +
}

run_tests () {
  local log=$build/project/meson-logs/testlog-env.json

  rm -rf "$build/reports" "$log"
  mkdir -p "$build/reports"
  (
    use_libraries
    export TSAN_OPTIONS="$(tsan_options):log_path=$build/reports/report"
    export VLM_TEST_STORM=${TSAN_STORM:-2000} VLM_TEST_CAPTIONS=${TSAN_CAPTIONS:-4}
    meson test -C "$build/project" --no-rebuild --print-errorlogs --num-processes 1 \
      --timeout-multiplier 20 --wrapper "env LD_PRELOAD=$(plugins)" "$@"
  )
  count_results < <(python3 tests/lib/meson-results.py "tsan: " "$log")
  list_reports
  check "no report of ThreadSanitizer (build-tsan/reports)" [ -z "$(list_reports)" ]
}

check "packages" install_packages $packages_build $packages_run $packages_tsan
check "sources and libraries" build_libraries || { summary; exit 1; }
check "ThreadSanitizer understands these libraries" prove || { summary; exit 1; }
check "build" build_tests || { summary; exit 1; }
run_tests ${*:-$(threaded_tests)}
summary
